"""What every accelerated object can tell about itself, whatever its framework: as functions, and as its methods.

accel.report(fast)    # for programs: `fast` keeps the type that it had before
fast.report()         # the same, for the shell
"""

from __future__ import annotations

import asyncio
import copy
import os
import warnings
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import replace
from inspect import getattr_static
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from .errors import AccelWarning, ConfigurationError, WrongObject, check_options, kind_of
from .process.threads import learner
from .reports import explain as explained
from .reports.explain import Format
from .reports.pictures import timeline as pictures
from .reports.report import Report
from .run import deadline, switch
from .run.batches.given import Configs, configured, several, unawaited, unlearnt
from .run.batches.journal import Serde
from .run.batches.many import Asked, Many
from .run.calls import batch as batches
from .run.plans import saved
from .run.plans.plan import Plan
from .run.scope import scope
from .run.settings import PASSING, Settings
from .run.waits.waiting import loop_here

SETTLE_S = 60.0
StrPath = str | os.PathLike[str]
R = TypeVar("R")
ADDED = ("plan", "report", "explain", "timeline", "warmup", "awarmup", "save_plan")


def report(fast: object) -> Report:
    """What was gained per request, what would gain more, and what became of every call, by your lines; ``print`` it, or
    ask its fields. `Report.priced` adds what it costs. Waits up to 60 s for what is being learnt, as do `explain`,
    `timeline` and `save_plan`; on an event loop, ``await asyncio.to_thread(accel.report, fast)``.

    `fast`: what `accelerate` gave back, as in all functions here; WrongObject (a TypeError) for anything else.
    """
    accel = _accelerated(fast, "report")._accel
    return Report(accel.plan, accel.settings, nodes=hasattr(accel, "pure_nodes"), program=accel.program)


def explain(fast: object, *, graph: bool = False, format: Format | None = None, path: StrPath | None = None) -> str:
    """Which call waits for which, and what starts when, in words.

    `format`: as "text", a "mermaid" flowchart or an "svg" picture, written to `path`, too, if one is given (default: as
    that ends, in ``.svg`` or ``.mmd``, else text).
    `graph`: the compiler's view instead: the learnt graph, what every pass made of it or why nothing, and the graph
    that runs follow. Raises ConfigurationError for what can't be drawn, and for a path that can't be written.
    """
    plan = _accelerated(fast, "explain")._accel.plan
    if path is None:
        return explained.explain(plan, graph=graph, format=format)
    file = _file(path, "explain")
    return _write(file, lambda: explained.explain(plan, graph=graph, format=format, path=file))


def timeline(fast: object, path: StrPath, *, texts: bool = False) -> None:
    """Draw the last run, before and after, at `path`: a page if that ends in ``.html``, a picture if in ``.svg``, for
    Perfetto if in ``.json``. `texts`: with what prompts and answers say, not only with their lengths (default: without;
    a picture never has them).

    Raises ConfigurationError before the first run, for a path that can't be written, and for another end of it.
    """
    plan = _accelerated(fast, "timeline")._accel.plan
    file = _file(path, "timeline")
    pictures.format_of(file)
    learner.settle(SETTLE_S)
    if plan.last is None:
        raise ConfigurationError("There is no run to draw yet.", "Run the program first.")
    last = plan.last
    _write(file, lambda: pictures.timeline(last, file, plan=plan, texts=texts))


def save_plan(fast: object, path: StrPath) -> None:
    """Write what was learnt to `path` as JSON: templates, call sites, names of classes; no components, no keys, no
    inputs or answers, but the words of the prompts. `accelerate(obj, plan=path)` takes it.

    Raises ConfigurationError before the first run, and for a path that can't be written; warns (AccelWarning) if runs
    have taught nothing, and writes an empty plan then.
    """
    plan = _accelerated(fast, "save_plan")._accel.plan
    file = _file(path, "save_plan")
    learner.settle(SETTLE_S)
    if not plan.learnt.nodes:
        remedy = "Run the program on two different inputs first: accel.warmup(fast, inputs)."
        if not plan.runs and not plan.pace.passed:
            raise ConfigurationError("There is no run to save anything of yet.", remedy)
        warnings.warn(AccelWarning("The saved plan is empty: nothing was learnt yet.", remedy), stacklevel=2)
    _write(file, lambda: saved.save(plan, file))


def load_plan(path: StrPath) -> Plan:
    """A plan that `save_plan` wrote; `accelerate(obj, plan=...)` takes it, or the path itself.

    Raises ConfigurationError for a file that is missing, damaged, or of another version of Accel.
    """
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError(
            f"{path!r} is neither a plan nor the path of one.",
            "Give the path that fast.save_plan(path) wrote, or the plan of an accelerated object, fast.plan.",
        )
    return saved.load(os.fspath(path))


def warmup(fast: object, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None:
    """Run the program on these inputs, effects included, and wait until Accel has learnt from them.

    `inputs`: two at least, and of different words, as what one run has shown may be somebody's data: each is what the
    program's main method takes (of methods with several arguments, a dict of them). `config`: of graphs and chains, one
    for all runs or a list of one for each input, so that what differs with every request (`thread_id`, say) differs
    here, too. `options`: handed to every call.

    Raises ConfigurationError for what is no list of inputs, or no configuration for each; warns (AccelWarning) if the
    inputs don't differ, and nothing was learnt before, and where Accel is off.
    """
    accelerated = _accelerated(fast, "warmup", options)
    asked = _asked(accelerated, inputs, config, "warmup")
    accelerated._accel.plan.pace.news()
    with unawaited(accelerated._accel_awaited):
        for value, beside in asked:
            accelerated._accel_run(value, **beside, **options)
    learner.settle(SETTLE_S)


async def awarmup(fast: object, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None:
    """`warmup` of a program of coroutines."""
    accelerated = _accelerated(fast, "awarmup", options)
    asked = _asked(accelerated, inputs, config, "awarmup")
    accelerated._accel.plan.pace.news()
    for value, beside in asked:
        await accelerated._accel_arun(value, **beside, **options)
    await asyncio.to_thread(learner.settle, SETTLE_S)


def batch(
    fast: object,
    inputs: Iterable[Any],
    *,
    max_concurrency: int | None = None,
    return_exceptions: bool = False,
    resume: StrPath | None = None,
    progress: bool = False,
    **options: Any,
) -> list[Any]:
    """The results of the program for all inputs, in their order, as separate runs give them; calls of its runs that are
    equal, and repeat what they give, are made once. `report` tells what that saved.

    `inputs`: a list or an iterator of what the program's main method takes, of which no more are taken than runs go on
    at once. `max_concurrency`: how many that are (default: as many as a pool has threads). `return_exceptions`: give
    errors as results (default: the first one is raised). `resume`: path of a journal of what is finished, from which an
    interrupted batch goes on. `progress`: show a bar on stderr. `options`: handed to every run.

    Raises ConfigurationError for a journal of another program or of other inputs, or a damaged one; MissingExtra if
    there is no rich to show a bar.
    """
    accelerated = _accelerated(fast, "batch", options)
    asked = Asked(max_concurrency, return_exceptions, resume, progress)
    return accelerated._accel_batch(_many(accelerated, inputs, "batch"), asked, options)


async def abatch(
    fast: object,
    inputs: Iterable[Any] | AsyncIterable[Any],
    *,
    max_concurrency: int | None = None,
    return_exceptions: bool = False,
    resume: StrPath | None = None,
    progress: bool = False,
    **options: Any,
) -> list[Any]:
    """`batch` by coroutines, in tasks of this loop; `inputs`: also an asynchronous iterator."""
    accelerated = _accelerated(fast, "abatch", options)
    asked = Asked(max_concurrency, return_exceptions, resume, progress)
    return await accelerated._accel_abatch(_many(accelerated, inputs, "abatch"), asked, options)


@runtime_checkable
class Accelerated(Protocol):
    """What `accelerate` gives back has these methods beside its own: the functions of the same name. Where the
    program's own class has one of that name, it keeps that.

    The type of `accelerate(obj)` is that of `obj`; ``isinstance(fast, accel.Accelerated)`` tells type checkers more.
    """

    @property
    def plan(self) -> Plan: ...
    def report(self) -> Report: ...
    def explain(self, *, graph: bool = False, format: Format | None = None, path: StrPath | None = None) -> str: ...
    def timeline(self, path: StrPath, *, texts: bool = False) -> None: ...
    def warmup(self, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None: ...
    async def awarmup(self, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None: ...
    def save_plan(self, path: StrPath) -> None: ...


# --- what was given -------------------------------------------------------------------------------------------------


def _accelerated(fast: Any, function: str, given: Iterable[str] = ()) -> Insight:
    """The accelerated object, or class, that was given; `given`: options that go on to its program."""
    check_options(function, given, ("config", "max_concurrency", "return_exceptions", "resume", "progress"))
    if not (issubclass(fast, Insight) if isinstance(fast, type) else isinstance(fast, Insight)):
        raise WrongObject(
            f"accel.{function}() takes what accelerate() gave back, not {kind_of(fast)}.",
            f"fast = accel.accelerate(obj), then accel.{function}(fast).",
        )
    return fast  # type: ignore[no-any-return]


def _asked(fast: Insight, inputs: Any, config: Configs, function: str) -> list[tuple[Any, dict[str, Any]]]:
    remedy = f"Give a list of two inputs or more that differ: accel.{function}(fast, [first, second])."
    if isinstance(fast, type):
        raise ConfigurationError(f"accel.{function}() runs an object, not a class.", "Call the class first.")
    values = list(several(inputs, function, remedy))
    if not values:
        raise ConfigurationError(f"{function}() was given no inputs.", remedy)
    knows = bool(fast.plan.runs or fast.plan.learnt.nodes)
    warning = unlearnt(values, fast._accel.settings, knows, function, remedy)
    if warning is not None:
        warnings.warn(warning, stacklevel=3)
    return configured(values, config, function, fast._accel_configured)


def _many(fast: Insight, inputs: Any, function: str) -> Any:
    remedy = f"Give a list or an iterator of inputs: accel.{function}(fast, [first, second])."
    if isinstance(fast, type):
        raise ConfigurationError(f"accel.{function}() runs an object, not a class.", "Call the class first.")
    return several(inputs, function, remedy, asynchronous=True)


def _file(path: Any, function: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError(f"accel.{function}() writes to a path, not {path!r}.", "Give a str or a Path.")
    file = os.fspath(path)
    folder = Path(file).parent
    if not folder.is_dir():
        raise ConfigurationError(
            f"There is no folder {folder}.", f"Create it first (mkdir -p {folder}), or name another."
        )
    return file


def _write(file: str, write: Callable[[], R]) -> R:
    try:
        return write()
    except OSError as error:
        raise ConfigurationError(f"{file} can't be written: {error.strerror}.", "Name another file.") from None


# --- accelerated objects --------------------------------------------------------------------------------------------


class HasPlan(Protocol):
    """What an adapter keeps with an accelerated object."""

    @property
    def plan(self) -> Plan: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def program(self) -> str: ...  # as users name such an object


_PYDANTIC_STATE = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


def shallow(obj: Any, cls: type) -> Any:
    """An object of this class that holds what `obj` holds; for classes that one of them is derived from the other."""
    made: Any = object.__new__(cls)
    made.__dict__.update(obj.__dict__)
    for name in _PYDANTIC_STATE:
        if hasattr(obj, name):
            object.__setattr__(made, name, copy.copy(getattr(obj, name)))
    return made


class _Plan:
    """What Accel has learnt about this program; can be given to `accelerate(..., plan=...)`. Unlike a property, it
    gives way to an attribute of the program's own."""

    def __get__(self, fast: Insight | None, cls: type) -> Any:
        return self if fast is None else fast._accel.plan


def of_program(cls: type) -> dict[str, Any]:
    """What a class has of its own under the names that accelerated objects add: programs find what they defined."""
    own = {name: getattr_static(cls, name, None) for name in ADDED}
    return {name: member for name, member in own.items() if member is not None}


class Insight:
    """Mixed into accelerated objects, in front of their own class. `_accel_run` and `_accel_arun` run the program on
    one input.

    Copies are made by the object's own class, and then accelerated as it is: with the same plan, which is about the
    program, but with an empty one in another process.
    """

    __slots__ = ()
    _accel: HasPlan
    _accel_configured = False
    """Whether its runs are given configurations."""

    def _accel_run(self, value: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def _accel_arun(self, value: Any, **options: Any) -> Any:
        raise NotImplementedError

    def _accel_awaited(self) -> bool:
        """Whether a part of the program can only be awaited."""
        return False

    def _accel_serde(self) -> Serde:
        """How results and inputs are written to a journal."""
        raise NotImplementedError

    def _accel_batch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        many = Many(self._accel.plan, self._accel_serde(), asked)
        return many.all(lambda value: self._accel_run(value, **options), inputs)

    async def _accel_abatch(self, inputs: Any, asked: Asked, options: dict[str, Any]) -> list[Any]:
        many = Many(self._accel.plan, self._accel_serde(), asked)
        return await many.aall(lambda value: self._accel_arun(value, **options), inputs)

    def _accel_settings(
        self, asynchronous: bool = False, asked: switch.Mode | None = None, within_s: float | None = None
    ) -> Settings | None:
        """What the run is to heed that begins with a call of it; None if that goes on as without Accel, or as part of
        the run that it is inside of; PASSING if this run is not worth following. By the call's metadata, `asked`: how
        much Accel is to do; `within_s`: when it is to be over."""
        if switch.off or scope.get() is not None:
            return None
        settings = switch.settings_for(self._accel.settings, asked)
        if settings is None:
            return None
        within_s = deadline.here() if within_s is None else within_s
        if within_s is not None:
            return replace(settings, deadline_s=within_s)
        follows, within = self._accel.plan.follows(loop_here() if asynchronous else None), batches.here()
        return settings if follows or (within is not None and within.hopeful) else PASSING

    def _accel_plain(self) -> Any:
        """This object, as its own class without Accel has it."""
        classes = type(self).__mro__
        return shallow(self, classes[classes.index(Insight) + 1])

    def _accel_like(self, plain: Any) -> Any:
        """`plain`, accelerated as this object is."""
        raise NotImplementedError

    def _accel_remade(self, plain: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A function of a module, and what it takes to accelerate `plain` as this object is, with an empty plan."""
        raise NotImplementedError

    def __copy__(self) -> Any:
        return self._accel_like(copy.copy(self._accel_plain()))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        return self._accel_like(copy.deepcopy(self._accel_plain(), memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._accel_remade(self._accel_plain())

    plan = _Plan()

    def report(self) -> Report:
        """See `accel.report`."""
        return report(self)

    def explain(self, *, graph: bool = False, format: Format | None = None, path: StrPath | None = None) -> str:
        """See `accel.explain`."""
        return explain(self, graph=graph, format=format, path=path)

    def timeline(self, path: StrPath, *, texts: bool = False) -> None:
        """See `accel.timeline`."""
        timeline(self, path, texts=texts)

    def warmup(self, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None:
        """See `accel.warmup`."""
        warmup(self, inputs, config=config, **options)

    async def awarmup(self, inputs: Iterable[Any], *, config: Configs = None, **options: Any) -> None:
        """See `accel.awarmup`."""
        await awarmup(self, inputs, config=config, **options)

    def save_plan(self, path: StrPath) -> None:
        """See `accel.save_plan`."""
        save_plan(self, path)
