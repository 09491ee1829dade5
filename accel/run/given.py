"""What `warmup` and `batch` are given: inputs, and what comes in beside each of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import ConfigurationError, kind_of

Config = Mapping[str, Any]
"""Of LangChain's form: `configurable`, `metadata`, `tags`, `callbacks` and so on."""
Configs = Config | Sequence[Config] | None
"""One for all runs, or one for each input, as the frameworks' own `batch` takes them."""
_TEXTS = str | bytes


def several(inputs: Any, function: str, remedy: str, asynchronous: bool = False) -> Any:
    """Inputs, if there can be several. Raises ConfigurationError for a single one."""
    takes = Iterable | AsyncIterable if asynchronous else Iterable
    if isinstance(inputs, _TEXTS | Mapping) or not isinstance(inputs, takes):
        raise ConfigurationError(f"The inputs of {function}() are a {kind_of(inputs)}, not a list.", remedy)
    return inputs


def configured(inputs: Sequence[Any], configs: Any, function: str, takes: bool) -> list[tuple[Any, dict[str, Any]]]:
    """Each input with the options of its run. `takes`: whether the program takes configurations. Raises
    ConfigurationError."""
    if configs is None:
        return [(each, {}) for each in inputs]
    if not takes:
        raise ConfigurationError(
            f"{function}() was given configurations, which this program doesn't take.",
            "Leave config= out: only graphs and chains have configurations.",
        )
    each_its_own = f"Give one for all, or a list of one for each input: accel.{function}(fast, [a, b], config=[x, y])."
    if isinstance(configs, Mapping):
        configs = [configs] * len(inputs)
    elif isinstance(configs, _TEXTS) or not isinstance(configs, Sequence):
        raise ConfigurationError(f"{function}(config=...) is a {kind_of(configs)}, no configuration.", each_its_own)
    if len(configs) != len(inputs):
        raise ConfigurationError(
            f"{function}() was given {len(inputs)} inputs and {len(configs)} configurations.", each_its_own
        )
    for config in configs:
        if not isinstance(config, Mapping):
            raise ConfigurationError(f"{function}(config=...) has a {kind_of(config)} in it.", each_its_own)
    return [(value, {"config": config}) for value, config in zip(inputs, configs, strict=True)]


@contextmanager
def unawaited(awaited: Callable[[], bool]) -> Iterator[None]:
    """Runs of a warm-up that is none of coroutines. Raises ConfigurationError where they fail and the program is
    `awaited`: frameworks have errors of their own for that."""
    try:
        yield
    except (TypeError, NotImplementedError) as error:
        if not awaited():
            raise
        raise ConfigurationError(
            "A part of this program is a coroutine.", "await accel.awarmup(fast, inputs)"
        ) from error
