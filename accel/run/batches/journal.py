"""What a batch has finished, on disk: an interrupted one goes on from there.

JSON lines: the first says whose journal it is, each further one holds the result of one input, with its position and
the input's digest. A line is written at once, and one that a killed process left half-written counts as not written.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import weakref
from collections.abc import Callable
from hashlib import sha256
from typing import Any, NamedTuple

from ...errors import ConfigurationError
from ...process import forks
from ...text.values import same, snapshot

VERSION = 1
_KIND = "a batch of Accel"
_CLOSED = -1
_ANEW = "Name another file, or delete this one to begin anew."


class Serde(NamedTuple):
    """A framework's own way to write values."""

    dumps: Callable[[Any], tuple[str, bytes]]
    """The type of what was written, and it."""
    loads: Callable[[tuple[str, bytes]], Any]


class Journal:
    """Of one batch, open for this process alone until `close`. Thread-safe.

    `program`: which program the results are of. Raises ConfigurationError for a file that is damaged, another
    program's, or in use.
    """

    def __init__(self, path: str | os.PathLike[str], program: str, serde: Serde) -> None:
        self.path = os.fspath(path)
        self._serde = serde
        self._lock = forks.lock()
        self._at: dict[int, tuple[int, int, str]] = {}
        """By position, where its line is, how long, and the digest of the input."""
        self._file = _CLOSED
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"The journal {self.path} can't be opened: {error.strerror}.", "Name a file in a folder that is there."
            ) from None
        try:
            self._open(program)
        except BaseException:
            self.close()
            raise
        _journals.add(self)

    @property
    def first(self) -> int | None:
        """The least position that it has. Of the inputs of a batch that was interrupted, few come before it."""
        return min(self._at, default=None)

    def digest(self, given: Any, position: int) -> str:
        """Of what an input is known by. Raises ConfigurationError where it was another one."""
        written = self._dumps(given, f"Input {position}", self._written_alike)
        digest = sha256(repr(written).encode()).hexdigest()
        known = self._at.get(position)
        if known is not None and known[2] != digest:
            raise ConfigurationError(
                f"The journal {self.path} is of other inputs: input {position} was another one.",
                f"Give the inputs that the batch began with, in their order. {_ANEW}",
            )
        return digest

    def has(self, position: int) -> bool:
        return position in self._at

    def result(self, position: int) -> Any:
        """Of an input that it has."""
        begin, length, _ = self._at[position]
        with self._lock:
            line = os.pread(self._file, length, begin)
        kind, data = json.loads(line)["result"]
        return self._serde.loads((kind, base64.b64decode(data)))

    def note(self, position: int, digest: str, result: Any) -> None:
        """An input is finished. Raises ConfigurationError for a result that would not come back as it is."""
        kind, data = self._dumps(result, f"The result of input {position}")
        if not _equal(result, self._serde.loads((kind, data))):
            raise ConfigurationError(
                f"The result of input {position} would come back from the journal {self.path} as another one.",
                "Leave resume out, or let the program give lists in place of tuples, and classes that can be compared.",
            )
        self._write(
            {"at": position, "input": digest, "result": [kind, base64.b64encode(data).decode()]}, position, digest
        )

    def close(self) -> None:
        """What ends later is not kept. Idempotent."""
        with self._lock:
            file, self._file = self._file, _CLOSED
        if file != _CLOSED:
            os.close(file)

    def _dumps(
        self, value: Any, what: str, dumps: Callable[[Any], tuple[str, bytes]] | None = None
    ) -> tuple[str, bytes]:
        try:
            return (dumps or self._serde.dumps)(value)
        except Exception as error:
            raise ConfigurationError(
                f"{what} can't be written to the journal {self.path}: {type(error).__name__}.",
                "Leave resume out, or let the program take and give what its framework can write: plain data, say.",
            ) from error

    def _written_alike(self, value: Any) -> tuple[str, bytes]:
        """By every process: each has an order of its own for sets."""

        def in_order(value: Any) -> Any:
            if type(value) is dict:
                return {key: in_order(each) for key, each in value.items()}
            if type(value) in (list, tuple):
                return [in_order(each) for each in value]
            if isinstance(value, set | frozenset):
                return ["set", *sorted(repr(self._written_alike(each)) for each in value)]
            return value

        return self._serde.dumps(in_order(value))

    def _write(self, line: dict[str, Any], position: int, digest: str) -> None:
        text = json.dumps(line).encode() + b"\n"
        with self._lock:
            if self._file == _CLOSED:
                return
            begin = os.lseek(self._file, 0, os.SEEK_END)
            try:
                why = "the disk is full" if os.write(self._file, text) != len(text) else ""
            except OSError as error:
                why = str(error.strerror)
            if why:
                os.ftruncate(self._file, begin)
                raise ConfigurationError(f"The journal {self.path} can't grow: {why}.", "Make room.")
            if position >= 0:
                self._at[position] = begin, len(text), digest

    def _open(self, program: str) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            what = f"The journal {self.path} is in use by another batch."
            raise ConfigurationError(what, "Wait until that one has ended, or name another file.") from None
        owner = sha256(program.encode()).hexdigest()
        head = {"journal": _KIND, "version": VERSION, "program": owner}
        end, begun = 0, False
        with open(self._file, "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n") and (number > 1 or json.dumps(head).encode().startswith(line)):
                    break  # half-written
                found = self._read(line, number)
                if number == 1:
                    self._check(found, owner)
                    begun = True
                else:
                    self._at[found["at"]] = end, len(line), found["input"]
                end += len(line)
        os.fchmod(self._file, 0o600)
        os.ftruncate(self._file, end)
        if not begun:
            self._write(head, -1, "")

    def _read(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(line)
            if number == 1 or (isinstance(found["at"], int) and isinstance(found["input"], str)):
                return found
        except (ValueError, KeyError, TypeError):
            pass
        raise ConfigurationError(f"Line {number} of {self.path} is no line of a batch's journal.", _ANEW)

    def _check(self, first: Any, owner: str) -> None:
        if not isinstance(first, dict) or first.get("journal") != _KIND:
            raise ConfigurationError(f"{self.path} is no journal of a batch.", _ANEW)
        if first.get("version") != VERSION:
            raise ConfigurationError(f"The journal {self.path} is of another version of Accel.", _ANEW)
        if first.get("program") != owner:
            raise ConfigurationError(f"The journal {self.path} is of another program.", _ANEW)


def _equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except Exception:  # noqa: BLE001  # arrays have no single answer
        return same(snapshot(value, exact=True), snapshot(other, exact=True))


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


@forks.in_child
def _in_child() -> None:
    """The lock on the file is to end with the parent, however long the child lives."""
    for journal in list(_journals):
        journal.close()
