"""`batch` and its kin of an accelerated graph: LangChain's own, whose runs are one batch; for inputs that are no list,
for a journal and for a progress bar, a bounded number of runs at once (`accel.run.batches.many`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.runnables.config import RunnableConfig, get_config_list
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from accel.errors import ConfigurationError
from accel.insight import Insight
from accel.run.batches.given import several
from accel.run.batches.journal import Serde
from accel.run.batches.many import Asked, Many, sharing
from accel.run.calls.batch import scope_of

Configs = RunnableConfig | Sequence[RunnableConfig] | None
Path = str | os.PathLike[str]
_COORDINATES = ("thread_id", "checkpoint_")


class Batches(Insight):
    """Mixed in front of the graph's own class."""

    __slots__ = ()
    _accel_configured = True

    def batch(
        self,
        inputs: Iterable[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        resume: Path | None = None,
        progress: bool = False,
        **options: Any,
    ) -> list[Any]:
        """As the graph's own. Calls of its runs that are equal, and repeat what they give, are made once.

        `inputs`: also an iterator, of which no more is taken than runs go on at once: `max_concurrency` of the
        configuration, or as many as a pool has threads. `resume`: path of a journal of what is finished, from which an
        interrupted batch goes on. `progress`: show a bar on stderr.
        """
        if isinstance(inputs, Sequence) and resume is None and not progress:
            inner: Callable[..., list[Any]] = super().batch  # type: ignore[misc]
            with sharing(self._accel.plan, inputs) as batch, scope_of(batch):
                results = inner(inputs, config, return_exceptions=return_exceptions, **options)
                batch.inputs = len(results)
                return results
        asked = Asked(None, return_exceptions, resume, progress)
        return self._accel_batch(inputs, asked, {**options, "config": config})

    async def abatch(
        self,
        inputs: Iterable[Any] | AsyncIterable[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        resume: Path | None = None,
        progress: bool = False,
        **options: Any,
    ) -> list[Any]:
        """As `batch`; `inputs`: also an asynchronous iterator."""
        if isinstance(inputs, Sequence) and resume is None and not progress:
            inner: Callable[..., Any] = super().abatch  # type: ignore[misc]
            with sharing(self._accel.plan, inputs) as batch, scope_of(batch):
                results: list[Any] = await inner(inputs, config, return_exceptions=return_exceptions, **options)
                batch.inputs = len(results)
                return results
        asked = Asked(None, return_exceptions, resume, progress)
        return await self._accel_abatch(inputs, asked, {**options, "config": config})

    def batch_as_completed(
        self,
        inputs: Iterable[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        resume: Path | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Iterator[tuple[int, Any]]:
        """As the graph's own, with what `batch` has beside. Inputs are taken as results are."""
        many = self._accel_many(config, Asked(None, return_exceptions, resume, progress), options)
        return many.completed(lambda item: self._accel_run(item[0], config=item[1], **options), _paired(inputs, config))

    def abatch_as_completed(
        self,
        inputs: Iterable[Any] | AsyncIterable[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        resume: Path | None = None,
        progress: bool = False,
        **options: Any,
    ) -> AsyncIterator[tuple[int, Any]]:
        """As `batch_as_completed`."""
        many = self._accel_many(config, Asked(None, return_exceptions, resume, progress), options)
        return many.acompleted(
            lambda item: self._accel_arun(item[0], config=item[1], **options), _apaired(inputs, config)
        )

    def _accel_many(self, config: Configs, asked: Asked, options: dict[str, Any]) -> Many:
        first = config if isinstance(config, Mapping) else next(iter(config or ()), None)
        if asked.max_concurrency is None:
            asked = replace(asked, max_concurrency=(first or {}).get("max_concurrency"))
        context = options.get("context")
        return Many(self._accel.plan, serde(), asked, lambda item: [item[0], _users(item[1]), context])

    def _accel_batch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        config: Configs = options.pop("config", None)
        many = self._accel_many(config, asked, options)
        return many.all(lambda item: self._accel_run(item[0], config=item[1], **options), _paired(inputs, config))

    async def _accel_abatch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        config: Configs = options.pop("config", None)
        many = self._accel_many(config, asked, options)
        return await many.aall(
            lambda item: self._accel_arun(item[0], config=item[1], **options), _apaired(inputs, config)
        )


def serde() -> Serde:
    """LangGraph's own, as checkpointers use it."""
    serializer = JsonPlusSerializer()
    return Serde(serializer.dumps_typed, serializer.loads_typed)


def _users(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a run's result may depend on, and is the same when the batch goes on."""
    configurable = (config or {}).get("configurable") or {}
    return {key: value for key, value in configurable.items() if not key.startswith(("__", *_COORDINATES))}


def _paired(inputs: Iterable[Any], config: Configs) -> Iterable[tuple[Any, RunnableConfig | None]]:
    """Each input with its configuration; of a sequence a sequence, whose length is known. Raises ConfigurationError for
    a single one."""
    if isinstance(inputs, Sequence):
        return list(zip(inputs, get_config_list(config, len(inputs)), strict=True))
    inputs = several(inputs, "batch", "Give a list or an iterator of inputs: fast.batch([first, second]).")
    return zip(inputs, _configs(config), strict=not (config is None or isinstance(config, Mapping)))


async def _pairs(inputs: AsyncIterable[Any], config: Configs) -> AsyncIterator[tuple[Any, RunnableConfig | None]]:
    configs = iter(_configs(config))
    async for value in inputs:
        try:
            yield value, next(configs)
        except StopIteration:
            raise ConfigurationError("There are more inputs than configurations.", "Give one, or one each.") from None


def _apaired(inputs: Any, config: Configs) -> Iterable[Any] | AsyncIterable[Any]:
    return _pairs(inputs, config) if isinstance(inputs, AsyncIterable) else _paired(inputs, config)


def _configs(config: Configs) -> Iterable[RunnableConfig | None]:
    """An id of a run is the first one's, as LangChain has it."""
    if config is None:
        return itertools.repeat(None)
    if not isinstance(config, Mapping):
        return config
    others: Any = {key: value for key, value in config.items() if key != "run_id"}
    return itertools.chain([config], itertools.repeat(others))
