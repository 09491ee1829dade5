"""A user's program, as a shell names it: `app.py:graph`, `package.module:make_engine`, `app.py:index.as_query_engine`.

with opened("app.py:graph", env_file=".env") as program:
    fast = program.accelerated(**options(config="accel.toml", speculate="likely"))
    for value in program.inputs(file="inputs.jsonl"):
        program.run(fast, value)
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

from ..api import accelerate
from ..errors import AccelError, ConfigurationError
from ..insight import Insight
from .inputs import Given, given
from .kinds import Programs, Told, programs_of, unknown
from .targets import failed, target

__all__ = ["Program", "opened", "options", "program_of"]


class Program:
    """An object that can be accelerated, and how it is run. Coroutines all run on one loop: clients belong to it."""

    def __init__(
        self, name: str, obj: Any, kind: Programs, loops: Loops, *, awaited: bool | None, config: Mapping[str, Any],
        make: Callable[[], Any] | None = None,
    ) -> None:  # fmt: skip
        """`awaited`: whether it is run by its coroutines; None: only where it has nothing else. `config`: of its
        framework's form, for every run. `make`: the factory."""
        self.name = name
        self.obj = obj._accel_plain() if isinstance(obj, Insight) else obj
        """Unmodified."""
        self.kind = kind
        self.awaited = kind.asynchronous(self.obj) if awaited is None else awaited
        self.config = config
        self._loops = loops
        self._make = make

    def accelerated(self, **chosen: Any) -> Any:
        """The object, accelerated with these options. Raises ConfigurationError."""
        try:
            return accelerate(self.obj, **chosen)
        except TypeError as error:
            raise ConfigurationError(f"{self.name}: {error}", "Name another object.") from error

    def inputs(self, file: str | Path | None = None, texts: Sequence[str] = ()) -> list[Any]:
        """What it is asked: a JSON value for each line of a file, and single ones. Raises ConfigurationError."""
        return self.taken(given(file, texts))

    def taken(self, asked: Sequence[Given]) -> list[Any]:
        """Inputs in the form of the program's framework. Raises ConfigurationError."""
        found = []
        for one in asked:
            try:
                found.append(self.kind.given(self.obj, one.value))
            except ValueError as error:
                raise ConfigurationError(f"{one.where}: {error}", "See the framework for what it takes.") from error
        return found

    def made_anew(self) -> Any:
        """What its factory gives now. Raises ConfigurationError where it has none."""
        if self._make is None:
            raise ConfigurationError(
                f"{self.name} is one object, and no function that makes one.",
                "Name a function without required arguments that builds the program, its stores included.",
            )
        found = programs_of(self._make())
        if found is None:
            raise ConfigurationError(f"{self.name} gave something else than before.", "Let it give the same each time.")
        return found[0]

    @property
    def ways(self) -> tuple[str, ...]:
        return self.kind.ways(self.obj)

    def run(self, obj: Any, value: Any, way: str = "", told: Told | None = None) -> Any:
        """Run `obj`, this program's object or an accelerated one, on a copy of an input; its result. `told`: gets all
        that its user sees. Raises what the program raises."""
        told = {} if told is None else told
        way = way or self.ways[0]
        arguments = obj, _copied(value), way, told, self.config
        if self.awaited:
            self._loops.run(lambda: self.kind.arun(*arguments))
        else:
            copy_context().run(self.kind.run, *arguments)
        return told.get("result")

    async def arun(self, obj: Any, value: Any, way: str = "", told: Told | None = None) -> Any:
        """The same on the loop that goes on (`together`)."""
        told = {} if told is None else told
        arguments = obj, _copied(value), way or self.ways[0], told, self.config
        if self.awaited:
            await self.kind.arun(*arguments)
        else:
            await asyncio.to_thread(self.kind.run, *arguments)
        return told.get("result")

    def together(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run something on the program's loop."""
        return self._loops.run(work)


def _copied(value: Any) -> Any:
    """For one run: programs change what they are given. What holds something that can't be copied is shared."""
    try:
        return copy.deepcopy(value)
    except TypeError:
        return value


class Loops:
    """One event loop, begun when something first needs it, and what factories have opened on it."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self.entered = ExitStack()
        self.awaited = AsyncExitStack()

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Raises ConfigurationError where a loop goes on already."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise ConfigurationError(
                "A program of coroutines can't be run from inside an event loop.",
                "Use a thread: await asyncio.to_thread(accel.check, graph, inputs).",
            )

        async def awaited() -> Any:
            return await work()

        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(awaited(), context=copy_context())

    def close(self) -> None:
        self.entered.close()
        if self._runner is not None:
            self._runner.run(self.awaited.aclose())
            self._runner.close()


@contextmanager
def opened(
    named: str,
    *,
    env_file: str | Path | None = None,
    awaited: bool | None = None,
    config: Mapping[str, Any] | None = None,
) -> Generator[Program, None, None]:
    """The program of this name, until the end of the block. `env_file`: variables that its module finds in its
    environment. `awaited`, `config`: see `Program`. Raises ConfigurationError."""
    if env_file is not None:
        load_env(Path(env_file))
    loops = Loops()
    try:
        obj = target(named, lambda found: programs_of(found) is not None)
        yield _made(named, obj, loops, awaited, config or {})
    finally:
        loops.close()


@contextmanager
def program_of(
    obj: Any, *, awaited: bool | None = None, config: Mapping[str, Any] | None = None
) -> Generator[Program, None, None]:
    """An object that a user holds, a factory of one, or the name of one."""
    if isinstance(obj, str):
        with opened(obj, awaited=awaited, config=config) as program:
            yield program
        return
    loops = Loops()
    try:
        name = getattr(obj, "name", None) or getattr(obj, "__name__", None) or type(obj).__name__
        yield _made(str(name), obj, loops, awaited, config or {})
    finally:
        loops.close()


def _made(name: str, obj: Any, loops: Loops, awaited: bool | None, config: Mapping[str, Any]) -> Program:
    found, make = programs_of(obj) if not isinstance(obj, type) else None, None
    if found is None and callable(obj):
        make = partial(_called, name, obj, loops)
        try:
            obj = make()
        except AccelError:
            raise
        except Exception as error:
            raise failed(name, error) from error
        found = programs_of(obj)
        if found is None:
            raise unknown(f"What {name} gives", obj)
    if found is None:
        raise unknown(name, obj)
    return Program(name, found[0], found[1], loops, awaited=awaited, config=config, make=make)


def _called(name: str, factory: Callable[..., Any], loops: Loops) -> Any:
    """What a factory gives: at once, awaited, or entered until the program is closed."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except (TypeError, ValueError):  # of what is built in
        parameters = []
    open_ended = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in open_ended]
    if needed:
        raise ConfigurationError(
            f"{name} takes {', '.join(needed)}: commands call factories without arguments.",
            "Write a function without required arguments that gives the graph or engine, and name that.",
        )
    made = factory()
    if inspect.isawaitable(made):
        coming = made
        try:
            made = loops.run(lambda: coming)
        except ConfigurationError:  # inside a loop: it is never awaited
            if inspect.iscoroutine(coming):
                coming.close()
            raise
    if hasattr(type(made), "__aenter__") and programs_of(made) is None:
        return loops.run(lambda: loops.awaited.enter_async_context(made))
    if hasattr(type(made), "__enter__") and programs_of(made) is None:
        return loops.entered.enter_context(made)
    return made


def load_env(path: Path) -> None:
    """Variables of a file, where the environment has none of that name. Raises ConfigurationError, MissingExtra."""
    from .extras import needs

    if not path.is_file():
        raise ConfigurationError(f"There is no file {path}.", "Name the file with --env-file.")
    needs("dotenv", "--env-file").load_dotenv(path, override=False)


def options(config: str | Path | None = None, **chosen: Any) -> dict[str, Any]:
    """Options of `accelerate`: of a TOML file, and chosen ones (None: not chosen), which go before. Raises
    ConfigurationError."""
    from .config import accelerate_options

    return accelerate_options(config, chosen)
