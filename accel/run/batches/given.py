"""What `warmup` and `batch` are given: inputs, and what comes in beside each of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...errors import AccelWarning, ConfigurationError, kind_of
from ...text.values import same, snapshot
from .. import switch
from ..settings import Settings

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


_OFF: dict[switch.State, tuple[str, str]] = {
    "off": ("Accel is off", 'ACCEL=on or accel.set_mode("on") turns it on; "watch" is enough to learn.'),
    "uninstalled": ("Accel is uninstalled", "Call accel.accelerate(obj) again after accel.uninstall()."),
}
"""What there is to say of a process, and what to do."""
_OFF_HERE = "Accel is off around this call", 'Leave the block of accel.mode("off") first; "watch" is enough to learn.'


def unlearnt(inputs: Sequence[Any], settings: Settings, knows: bool, function: str, remedy: str) -> AccelWarning | None:
    """What to warn of where nothing will be learnt from these inputs: Accel is off, or they are one and the same.
    `knows`: what was learnt before tells what of it is somebody's."""
    if switch.settings_for(settings, None) is None:
        why, turn_on = _OFF.get(switch.state(), _OFF_HERE)
        return AccelWarning(f"{function}() runs the program, but nothing is learnt: {why}.", turn_on)
    first, *others = map(snapshot, inputs)
    if knows or not all(same(first, other) for other in others):
        return None
    what = f"{function}() was given one input only: what it says may be somebody's data, and is not learnt."
    return AccelWarning(what, remedy)


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
