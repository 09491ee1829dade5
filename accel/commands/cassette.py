"""Recorded answers of models and services: JSON lines, one for each call of a component.

    {"component": "...ChatOpenAI", "as": "5f0c...", "method": "chat", "key": "9ab1...", "alike": "77d0...", "turn": 0,
     "seconds": 1.31, "result": {...}}                          # or "chunks": [[0.21, {...}], ...] of a stream

A call is found by its component's class and plain settings (`as`), the family of its method and a digest of its input;
where no input is equal, by one that differs in times and made-up ids alone (`alike`). A model that is asked the same
again in one run has its next answer (`turn`); of calls that were under way side by side (`beside`) all have the first
one's, as their order is open. Whatever else is asked again has the same answer. Errors are kept in memory alone: the
next time the call is made again. Secrets are never written, and only the user may read the file.
"""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import AccelError, ConfigurationError
from ..parts.methods.methods import Method
from ..parts.methods.sdks import DECLARED
from ..text.values import Tree
from .codec import Names, Unwritable, alike_of, decoded, encoded, key_of, secrets_of
from .kinds import Programs

_HEAD = {"accel_cassette": 1}
"""The first line: which format it is."""
_REMEDY = "Delete the file, or name another one: it is made again."


class NotRecorded(AccelError):
    """The accelerated program asked for what the unmodified one did not."""


def takes(method: Method) -> bool:
    """Whether answers of this method are recorded: of models and services. Stores and retrievers hold what the program
    wrote, and functions run here."""
    if method.op == "ingestion" or method.family in ("function", "coroutine"):
        return False
    return method.op in ("decode", "embedding", "reranking") or not method.by_object or _is_declared(method)


def _is_declared(method: Method) -> bool:
    return method.family.startswith(DECLARED)


@dataclass(eq=False, slots=True)
class Answer:
    """What one call gave. Whole, in chunks with the second each came at, or an error; as JSON, or if that can't be, as
    it is."""

    turn: int
    seconds: float
    beside: bool = False
    result: Any = None
    chunks: list[tuple[float, Any]] | None = None
    error: BaseException | None = None
    live: bool = False
    """`result`, or each chunk, is an object and not JSON."""

    def same(self, other: Answer) -> bool:
        mine, theirs = self._said(), other._said()
        return bool(mine == theirs)

    def _said(self) -> Any:
        return self.result, [chunk for _, chunk in self.chunks or ()], type(self.error), str(self.error)


@dataclass(frozen=True, slots=True)
class Key:
    """Of a call: equal ones ask the same."""

    component: str
    configured: str
    family: str
    input: str
    alike: str = field(compare=False)


class Cassette:
    """Thread-safe. Without a `path` it lasts as long as the process."""

    def __init__(self, path: Path | None = None) -> None:
        """Raises ConfigurationError for a file that is no cassette."""
        self.path = path
        self.recorded = self.replayed = 0
        self.kept: set[str] = set()
        """Classes of results that could not be written to the file, and are kept in memory."""
        self.live: set[str] = set()
        """Calls of which no copy can be kept at all: they are made each time."""
        self._live: set[Key] = set()
        self._names = Names()
        self._answers: dict[Key, list[Answer]] = {}
        self._alike: dict[tuple[str, ...], Key] = {}
        self._lock = threading.Lock()
        if path is not None and path.exists():
            self._read(path)
        elif path is not None and not os.access(path.parent, os.W_OK):
            raise ConfigurationError(f"{path} can't be written.", "Name a file in a folder that you may write to.")

    def key(self, method: Method, component: Any, tree: Tree) -> Key:
        """`tree`: without what the framework passes for itself."""
        return Key(*self._names.of(component), method.family, key_of(tree), alike_of(tree))

    def turns(self, key: Key, method: Method) -> list[Answer]:
        """The answers to one input in their order, one for each turn."""
        with self._lock:
            answers = self._answers.get(key)
            if answers is None:
                known = self._alike.get(_alike(key))
                answers = self._answers.get(known, []) if known is not None else []
            found: list[Answer] = []
            for answer in answers if method.op == "decode" else answers[:1]:
                found.append(found[-1] if answer.beside and found else answer)
            return found

    def add(self, key: Key, answer: Answer, programs: Programs, component: Any) -> bool:
        """Keep an answer; in the file, too, if it can be written down. False if it can't be kept."""
        secrets = secrets_of(component)
        try:
            if answer.error is None and answer.chunks is None:
                answer.result = encoded(programs.dump(answer.result), secrets)
            elif answer.error is None:
                answer.chunks = [(at, encoded(programs.dump(chunk), secrets)) for at, chunk in answer.chunks or ()]
        except Unwritable as why:
            try:
                answer.result, answer.chunks = copy.deepcopy((answer.result, answer.chunks))
            except Exception:  # noqa: BLE001  whatever an object says that can't be copied
                self.lives(key, str(why))
                return False
            answer.live = True
            self.kept.add(str(why))
        with self._lock:
            if not self._put(key, answer):
                return True  # somebody asked the same at the same time
            self.recorded += 1
            if self.path is not None and answer.error is None and not answer.live:
                _append(self.path, _line(key, answer))
        return True

    def _put(self, key: Key, answer: Answer) -> bool:
        """False if there is an answer of this turn."""
        known = self._answers.setdefault(key, [])
        self._alike.setdefault(_alike(key), key)
        if any(each.turn == answer.turn for each in known):
            return False
        known.append(answer)
        known.sort(key=lambda each: each.turn)
        return True

    def lives(self, key: Key, name: str) -> None:
        """Of a call with this key nothing can be kept."""
        self._live.add(key)
        self.live.add(name)

    def is_live(self, key: Key) -> bool:
        return key in self._live

    def result(self, answer: Answer, method: Method, programs: Programs) -> Any:
        """A new object; of chunks, what the component's framework makes of them. Raises a recorded error."""
        if answer.error is not None:
            raise _again(answer.error)
        if answer.chunks is not None:
            assert method.merge is not None
            return method.merge([self._object(answer, chunk, programs) for _, chunk in answer.chunks])
        return self._object(answer, answer.result, programs)

    def chunks(self, answer: Answer, method: Method, programs: Programs) -> Iterator[tuple[float, Any]]:
        """New objects, with the second each comes at. Raises a recorded error."""
        if answer.error is not None:
            raise _again(answer.error)
        if answer.chunks is None:
            yield answer.seconds, programs.chunk(method, self._object(answer, answer.result, programs))
        for at, chunk in answer.chunks or ():
            yield at, self._object(answer, chunk, programs)

    def _object(self, answer: Answer, kept: Any, programs: Programs) -> Any:
        if answer.live:
            return copy.deepcopy(kept)
        try:
            return programs.load(decoded(kept))
        except (LookupError, TypeError, ValueError) as error:
            raise ConfigurationError(f"A recorded answer can't be read: {error}.", _REMEDY) from error

    # --- the file

    def _read(self, path: Path) -> None:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} can't be read: {error}.", _REMEDY) from error
        for number, line in enumerate(lines, 1):
            try:
                found = json.loads(line)
                if found == _HEAD:  # once more where two processes began the file
                    continue
                if number == 1:
                    raise ValueError("its first line doesn't say that it is one of this format")
                self._known(found)
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigurationError(f"{path}, line {number}: this is no cassette: {error}.", _REMEDY) from error

    def _known(self, found: dict[str, Any]) -> None:
        key = Key(found["component"], found["as"], found["method"], found["key"], found["alike"])
        chunks = [(float(at), chunk) for at, chunk in found["chunks"]] if "chunks" in found else None
        beside = bool(found.get("beside"))
        self._put(key, Answer(int(found["turn"]), float(found["seconds"]), beside, found.get("result"), chunks))


def _alike(key: Key) -> tuple[str, ...]:
    return key.component, key.configured, key.family, key.alike


def _line(key: Key, answer: Answer) -> dict[str, Any]:
    line: dict[str, Any] = {
        "component": key.component, "as": key.configured, "method": key.family, "key": key.input, "alike": key.alike,
        "turn": answer.turn, "seconds": round(answer.seconds, 6),
    }  # fmt: skip
    if answer.beside:
        line["beside"] = True
    if answer.chunks is not None:
        return {**line, "chunks": [[round(at, 6), chunk] for at, chunk in answer.chunks]}
    return {**line, "result": answer.result}


def _append(path: Path, line: dict[str, Any]) -> None:
    """In one piece: what is there stays readable if the process ends."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.fchmod(file, 0o600)
        lines = [] if os.fstat(file).st_size else [_HEAD]
        os.write(file, "".join(json.dumps(each) + "\n" for each in (*lines, line)).encode())
    finally:
        os.close(file)


def _again(error: BaseException) -> BaseException:
    with suppress(Exception):  # one that can't be copied is raised again itself
        made = copy.copy(error)
        made.__cause__, made.__context__, made.__traceback__ = error.__cause__, None, None
        return made
    return error.with_traceback(None)
