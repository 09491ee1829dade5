"""A host without a framework: components of ten lines, patched like any other, and runs in which a program calls them.

Whatever tests need of a run, a plan or a call is made here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from accel.graph.ir import Evidence, Node
from accel.graph.ops import OPS
from accel.graph.topology import END, START, Control, Topology
from accel.parts.components import Facts, register
from accel.parts.methods.methods import METHODS, Inner, Method, build_call, read_call
from accel.parts.methods.patches import enable, install
from accel.parts.program.said import Said, Standing
from accel.run.calls.call import Call
from accel.run.drive import begin
from accel.run.ongoing import followed
from accel.run.plans.plan import Plan
from accel.run.run import Run
from accel.run.scope import Scope, scope
from accel.run.settings import Host, Settings
from accel.run.waits.waiting import Woken, until
from accel.text.values import Tree, snapshot


class Model:
    """Answers the same question in the same words; `key`: what it pays with."""

    def __init__(self, name: str = "model", key: str | None = None) -> None:
        self.name = name
        self.api_key = key

    def fake_ask(self, text: str) -> str:
        return f"{self.name} knows of {text} that it is old\nand that {text} is far away"


class OtherModel(Model):
    """Nobody vouches for it."""

    def fake_ask(self, text: str) -> str:
        return text


class Embedder:
    def __init__(self, name: str = "embedder") -> None:
        self.name = name

    def fake_embed(self, text: str) -> list[float]:
        return [len(text) / 7 + place for place in range(8)]


class Store:
    """Finds a text for a query that it embeds first."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def fake_find(self, text: str) -> list[str]:
        return [f"what is written on {text}, at {self.embedder.fake_embed(text)[0]:.1f}"]


def _method(name: str, op: str, **more: Any) -> Method:
    return Method(name, name, op, "sync", read_call, build_call, snapshot, **more)


ASK = replace(_method("fake_ask", "decode", lend=str), view=lambda text: {"content": text})
EMBED = _method("fake_embed", "embedding", copy=list)
QUERY = Inner("embedding", "fake_embed", (("args", 0),), lambda store: store.embedder)
FIND = _method("fake_find", "searching", inner=QUERY, by_object=True, lend=list)
CLASSES = ((Model, ASK), (OtherModel, ASK), (Embedder, EMBED), (Store, FIND))


@contextmanager
def patched() -> Iterator[None]:
    """As if an adapter knew these classes, and a user had vouched for them."""
    enable()
    for cls, method in CLASSES:
        install(cls, method)
    for cls in (Model, Embedder, Store):
        register(cls, pure=True, local=True, concurrency=8)
    try:
        yield
    finally:
        for _, method in CLASSES:
            METHODS.pop((method.family, method.name), None)


# --- runs -------------------------------------------------------------------------------------------------------------

TOPOLOGY = Topology({START: frozenset({"a"}), "a": frozenset({"b", "c"}), "b": frozenset({END}), "c": frozenset({END})})
"""After `a` comes `b` or `c`."""


class Refers:
    """What a program refers to."""

    def __init__(self, *components: Any) -> None:
        self.components = components

    def __call__(self, component: Any, made_at: str = "", called: Collection[str] = ()) -> bool:
        return any(one is component for one in self.components)

    def ran(self, used: Iterable[Any]) -> None:
        pass

    def only(self, cls: str, by_object: bool) -> Any:
        found = [one for one in self.components if type(one).__qualname__ == cls]
        return found[0] if len(found) == 1 else None

    def standing(self) -> Standing:
        return Standing()

    def said(self, standing: Standing) -> Said:
        return Said({}, {}, [])


@contextmanager
def opened(
    plan: Plan | None = None, value: Any = None, settings: Settings | None = None, topology: Topology = TOPOLOGY,
    **host: Any,
) -> Iterator[Run]:  # fmt: skip
    """A run that the code inside is made in."""
    plan = plan or Plan()
    control = Control(topology, plan.barriers, (), ())
    host = {"references": Refers(), **host}
    run = begin(plan, settings or Settings(), Host(control, config=lambda: None, **host), value)
    token = scope.set(Scope(run))
    try:
        yield run
    finally:
        scope.reset(token)
        run.finish(True)


def think(run: Run) -> None:
    """The program takes its time: whatever may be made early has been."""
    assert followed(30.0)
    while waiting := [call.outcome for call in run.calls.all() if not call.over]:
        for outcome in waiting:
            woken = Woken()
            outcome.wake(woken)
            until(woken, 30.0)
        assert followed(30.0)


SURE = Evidence("verified", always=True)


def node(op: str = "decode", tree: Tree = None, **fields: Any) -> Node:
    """One that is known for sure."""
    known = {"site": "here", "method": "fake_ask", "evidence": SURE}
    return Node("node", OPS[op], tree, **(known | fields))


# --- calls ------------------------------------------------------------------------------------------------------------

AMBIENT: Any = ({}, None)
PURE = Facts(pure=True, concurrency=8, local=True, readonly=False, owned=False, streams_equal=False, twins=False)


def early(method: Method = ASK, component: Any = None, input: Tree = "question", **state: Any) -> Call:
    """A call that was issued, in a state."""
    component = component if component is not None else Model()
    call = Call(method, component, "identity", input, ("key",), state.pop("ambient", AMBIENT), standing="early")
    call.issued_for = "here"
    for name, value in state.items():
        setattr(call, name, value)
    return call


def as_coroutine(method: Method) -> Method:
    return replace(method, name=f"a{method.name}", kind="async")


def as_stream(method: Method) -> Method:
    return replace(method, name=f"{method.name}_stream", kind="stream")
