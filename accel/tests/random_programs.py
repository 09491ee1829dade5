"""Small programs over fake components, written down or made up by hypothesis, and the traces of their runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from accel.parts.methods.methods import Inner, Method
from accel.text.values import Vector, freeze
from accel.trace.record import CallRecord, Trace, Visit

# --- components -------------------------------------------------------------------------------------------------------


def words(seed: object, count: int) -> str:
    """Words that nobody else says."""
    digits = hashlib.sha256(repr(seed).encode()).hexdigest()
    return " ".join("".join("bdfgklmnprstvzwj"[int(d, 16)] + "aeiou"[int(d, 16) % 5] for d in digits[i : i + 3])
                    for i in range(0, 3 * count, 3))  # fmt: skip


def _method(op: str, inner: Inner | None = None) -> Method:
    return Method(op, op, op, "sync", lambda *_: None, lambda *_: ((), {}), lambda output: output, inner=inner)


STORE_METHODS = {
    ("searching", "searching"): _method("searching", Inner("embedding", "query", (("args", 0),), lambda one: FAKES)),
    ("ingestion", "ingestion"): _method("ingestion", Inner("embedding", "texts", (("args", 0),), lambda one: FAKES)),
}
"""What an adapter would say of stores: they embed queries and texts before all else."""
FAKES = object()


class Host:
    """Runs a program on fake components, and records what it asks of them."""

    def __init__(self, value: Any) -> None:
        self.trace = Trace(value)
        self.trace.tick()
        self._visit: Visit | None = None
        self._written: list[str] = []

    def ask(self, site: str, prompt: Any, answer: str | None = None, shape: str = "text", sample: int = 0) -> str:
        """Call a model."""
        return self.end(self.begin(site, prompt, answer, shape, sample))

    def begin(
        self, site: str, prompt: Any, answer: str | None = None, shape: str = "text", sample: int = 0
    ) -> CallRecord:
        """The same, going on beside others until its `end`."""
        said = SHAPES[shape]((site, freeze(prompt), sample)) if answer is None else answer
        return self._begin("decode", site, prompt, {"content": said})

    def end(self, call: CallRecord) -> Any:
        call.end, call.ended_s = self.trace.tick(), 0.0
        return call.output["content"] if call.op == "decode" else call.output

    def search(self, site: str, query: str) -> list[str]:
        """What a store has for a query; that depends on what was written to it."""
        return self.find(site, query, [words((query, *self._written, number), 5) for number in range(2)])

    def find(self, site: str, query: str, found: list[str]) -> list[str]:
        """Call a store that has just this."""
        tree = {"args": [query], "kwargs": {"k": 2}}
        call = self._begin("searching", site, tree, [{"text": text} for text in found])
        inner = {"args": [query], "kwargs": {}}
        self.end(self._begin("embedding", site, inner, vector(query), family="query", parent=call))
        self.end(call)
        return found

    def add(self, site: str, texts: Sequence[str]) -> None:
        """Write texts to the store."""
        tree = {"args": [list(texts)], "kwargs": {}}
        call = self._begin("ingestion", site, tree, None)
        vectors = [vector(text) for text in texts]
        self.end(self._begin("embedding", site, tree, vectors, family="texts", parent=call))
        self.end(call)
        self._written += texts

    @contextmanager
    def node(self, name: str, entered: Any) -> Iterator[Visit]:
        """A framework node, which puts out what is in `left` at its end."""
        position = sum(visit.node == name for visit in self.trace.visits)
        visit = Visit(name, self.trace.tick(), entered, 0.0, position=position)
        self.trace.visits.append(visit)
        self._visit, outer = visit, self._visit
        yield visit
        self._visit = outer
        visit.end, visit.ended_s = self.trace.tick(), 0.0

    def done(self) -> Trace:
        self.trace.completed = True
        return self.trace

    def _begin(self, op: str, site: str, tree: Any, output: Any, family: str = "", **more: Any) -> CallRecord:
        call = CallRecord(
            site, self._visit.node if self._visit is not None else "", family or op, family or op, op, FAKES, "fakes",
            tree, freeze(tree), self.trace.tick(), 0.0, output=output, visit=self._visit, **more,
        )  # fmt: skip
        self.trace.calls.append(call)
        return call


def vector(text: str) -> Vector:
    return Vector.of([byte / 7 for byte in hashlib.sha256(text.encode()).digest()[:8]])


def _items(seed: object) -> list[str]:
    return [words((seed, number), 3) for number in range(2 + len(words(seed, 1)) * ord(words(seed, 1)[0]) % 3)]


SHAPES: dict[str, Callable[[object], str]] = {
    "text": lambda seed: words(seed, 6),
    "lines": lambda seed: "\n".join(_items(seed)),
    "numbered": lambda seed: "\n".join(f"{number}. {item}" for number, item in enumerate(_items(seed), 1)),
    "bullets": lambda seed: "Here:\n" + "\n".join(f"- {item}" for item in _items(seed)),
    "verdict": lambda seed: "yes" if words(seed, 1)[0] < "m" else "no",
}
LISTS = ("lines", "numbered", "bullets")


def items_of(text: str) -> list[str]:
    """How programs split an answer."""
    rows = [row for row in text.split("\n") if row != "Here:"]
    return [row.removeprefix("- ").split(". ", 1)[-1] for row in rows]


def traces(program: Callable[[Host], Any], inputs: Sequence[Any]) -> list[Trace]:
    """A run for each input."""
    found = []
    for value in inputs:
        host = Host(value)
        program(host)
        found.append(host.done())
    return found


# --- programs ---------------------------------------------------------------------------------------------------------
# Numbers refer to texts and lists that are known at a step, counted round and round.


@dataclass(frozen=True)
class Ask:
    """A prompt with texts; a list shape gives a list."""

    texts: tuple[int, ...]
    shape: str = "text"
    chat: bool = False


@dataclass(frozen=True)
class Each:
    """A loop over a list, one after the other or all together; gives the list of what the last step gave."""

    over: int
    body: tuple[Any, ...]
    together: bool = False


@dataclass(frozen=True)
class Join:
    """A prompt with a list."""

    over: int
    sep: str
    numbered: bool = False


@dataclass(frozen=True)
class Repeat:
    """The same prompt so many times; gives a list."""

    texts: tuple[int, ...]
    times: int


@dataclass(frozen=True)
class Refine:
    """A loop whose prompts hold the answer of the iteration before."""

    over: int


@dataclass(frozen=True)
class Decide:
    """A prompt whose answer says whether the body runs."""

    texts: tuple[int, ...]
    body: tuple[Any, ...]


@dataclass(frozen=True)
class Search:
    text: int


@dataclass(frozen=True)
class Add:
    over: int


@dataclass(frozen=True)
class Program:
    """nodes: every step is one of the framework's, which keeps a state."""

    steps: tuple[Any, ...]
    nodes: bool = False

    def __call__(self, host: Host) -> None:
        known = Known([host.trace.input["q"], host.trace.input["who"]], [host.trace.input["topics"]])
        state = dict(host.trace.input)
        for number, step in enumerate(self.steps):
            if not self.nodes:
                run(step, f"s{number}", host, known)
                continue
            with host.node(f"n{number}", dict(state)) as visit:
                visit.left = {f"v{number}": run(step, f"s{number}", host, known)}
            state |= visit.left


@dataclass
class Known:
    texts: list[str]
    lists: list[list[str]]

    def text(self, number: int) -> str:
        return self.texts[-1 - number % len(self.texts)]

    def items(self, number: int) -> list[str]:
        return self.lists[-1 - number % len(self.lists)]

    def copy(self) -> Known:
        return Known(list(self.texts), list(self.lists))


def prompt(site: str, known: Known, numbers: Sequence[int]) -> str:
    told = words(("literal", site), 2).capitalize()
    return f"{told}: " + f" ({told}) ".join(map(known.text, numbers)) + " Answer!"


def run(step: Any, site: str, host: Host, known: Known) -> Any:
    """What the step gives, which is known from then on."""
    match step:
        case Ask(numbers, shape, chat):
            text: Any = prompt(site, known, numbers)
            said = host.ask(site, [{"content": "Be brief."}, {"content": text}] if chat else text, shape=shape)
            return _know(known, items_of(said) if shape in LISTS else said)
        case Each(over, body, False):
            return _know(known, [_body(body, site, host, known, item) for item in known.items(over)])
        case Each(over, (Ask(numbers), *_), True):
            own = [replace(known.copy(), texts=[*known.texts, item]) for item in known.items(over)]
            calls = [host.begin(site, prompt(site, one, numbers)) for one in own]
            return _know(known, [host.end(call) for call in calls])
        case Join(over, sep, numbered):
            items = [f"[{n}] {item}" for n, item in enumerate(known.items(over), 1)] if numbered else known.items(over)
            told = words(("literal", site), 2).capitalize()
            return _know(known, host.ask(site, f"{told}:\n{sep.join(items)}\nAnswer {known.texts[0]}!"))
        case Repeat(numbers, times):
            return _know(known, [host.ask(site, prompt(site, known, numbers), sample=n) for n in range(times)])
        case Refine(over):
            said = host.ask(f"{site}.first", f"Begin with {known.items(over)[0]}.")
            for item in known.items(over)[1:]:
                said = host.ask(f"{site}.next", f"So far: {said}\nNow with {item}.")
            return _know(known, said)
        case Decide(numbers, body):
            if host.ask(site, prompt(site, known, numbers), shape="verdict") == "yes":
                _body(body, site, host, known, "")
            return None
        case Search(number):
            return _know(known, host.search(site, known.text(number)))
        case Add(over):
            host.add(site, known.items(over))
            return None
    raise TypeError(step)


def _body(steps: Sequence[Any], site: str, host: Host, known: Known, item: str) -> str:
    """The last text that the steps know of."""
    own = known.copy()
    own.texts += [item] if item else []
    for number, step in enumerate(steps):
        run(step, f"{site}.{number}", host, own)
    return own.texts[-1]


def _know(known: Known, value: Any) -> Any:
    known.lists.append(value) if isinstance(value, list) else known.texts.append(value)
    return value


# --- made up ----------------------------------------------------------------------------------------------------------

NUMBER = st.integers(0, 3)
NUMBERS = st.lists(NUMBER, min_size=1, max_size=2, unique=True).map(tuple)
SEPS = st.sampled_from(("\n", "; ", "\n\n", " | "))
ASK = st.builds(Ask, NUMBERS, st.sampled_from(("text", *LISTS)), st.booleans())
OF_ITEM = ASK.map(lambda ask: replace(ask, texts=(0, *ask.texts)))
LEAF = st.one_of(
    ASK, st.builds(Join, NUMBER, SEPS, st.booleans()), st.builds(Repeat, NUMBERS, st.integers(2, 3)),
    st.builds(Search, NUMBER),
)  # fmt: skip
LISTING = st.builds(Ask, NUMBERS.map(lambda texts: (0, *texts)), st.sampled_from(LISTS), st.booleans())
FIND_IT = st.builds(Search, st.just(0))
NESTED = st.tuples(LISTING, st.builds(Each, st.just(0), st.tuples(OF_ITEM), st.booleans()))
INNER = st.one_of(st.tuples(OF_ITEM), st.tuples(FIND_IT), NESTED)
LOOP = st.builds(Each, NUMBER, INNER, st.just(False))
TOGETHER = st.builds(Each, NUMBER, st.tuples(OF_ITEM), st.just(True))
PLAIN = st.one_of(LEAF, LOOP, TOGETHER, st.builds(Add, NUMBER))
PLAIN_PROGRAMS = st.builds(Program, st.lists(PLAIN, min_size=1, max_size=5).map(tuple), st.booleans())
"""Those that make the same calls in every run, but for the lengths of lists."""

DECISION = st.builds(Decide, NUMBERS, st.lists(st.one_of(ASK, LOOP), min_size=1, max_size=2).map(tuple))
STEP = st.one_of(PLAIN, st.builds(Refine, NUMBER), DECISION)
PROGRAMS = st.builds(Program, st.lists(STEP, min_size=2, max_size=5).map(tuple), st.booleans())

IN_LOOPS = st.one_of(OF_ITEM, FIND_IT, st.builds(Each, NUMBER, st.tuples(OF_ITEM), st.booleans()))
ODD = st.builds(Each, NUMBER, st.lists(IN_LOOPS, min_size=1, max_size=2).map(tuple), st.just(False))
ODD_PROGRAMS = st.builds(Program, st.lists(st.one_of(STEP, ODD), min_size=2, max_size=5).map(tuple), st.booleans())
"""Also with loops inside others that have nothing to do with them."""


def inputs(count: int) -> list[dict[str, Any]]:
    """About different things."""
    return [
        {
            "q": words(("q", n), 4),
            "who": words(("who", n), 2),
            "topics": [words(("topic", n, i), 3) for i in range(2 + n % 2)],
        }
        for n in range(count)
    ]
