"""The advice of a report, followed, gains what it said within a third: programs of the corpus, of whose components one
fact is left out, in virtual time. That repeats bit by bit, on a machine of any speed."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import accel
import accel_local
from accel.process import clock
from accel.reports.limits.replay import Replay
from accel.run.settings import Settings
from accel.run.waits import gates
from accel_langgraph import AccelChatModel, AccelVectorStore
from bench.engines import Engines, simulated
from bench.measure import plain
from corpus import Program, programs

REQUESTS = 8
"""The last one is compared; from the others the program is learnt."""
FACTS = {"pure": True, "local": True, "concurrency": 64, "streams_equal": True, "readonly": True}
NOTHING = "nothing"
"""Declared of the model."""
ONE_FACT = [
    ("local", "best_slogans"),
    ("local", "citation_check"),
    ("local", "document_pipeline"),
    ("local", "entity_lookup"),
    ("local", "gpt_researcher"),
    ("local", "hyde_rerank"),
    ("local", "letter_placeholders"),
    ("local", "model_per_node"),
    ("local", "press_desk"),
    ("local", "research_queries"),
    ("concurrency", "best_slogans"),
    ("concurrency", "book_outline"),
    ("concurrency", "consistent_answer"),
    ("concurrency", "document_pipeline"),
    ("concurrency", "entity_lookup"),
    ("concurrency", "expert_panel"),
    ("concurrency", "guarded_answer"),
    ("concurrency", "hyde_rerank"),
    ("concurrency", "letter_placeholders"),
    ("concurrency", "press_desk"),
    ("concurrency", "research_queries"),
    ("concurrency", "travel_planner"),
    ("streams_equal", "best_slogans"),
    ("streams_equal", "gpt_researcher"),
    ("readonly", "retriever_per_call"),
]
SEVERAL = ["document_pipeline", "letter_placeholders", "press_desk", "research_queries"]


@dataclass
class Hosted:
    """Components that no table knows, and what is declared of them."""

    model: type[AccelChatModel]
    store: type[AccelVectorStore]
    streaming: bool = False


def hosted(withheld: str) -> Hosted:
    class Model(AccelChatModel):
        """Overrides what it calls, so that it inherits no facts."""

        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            return await super()._agenerate(*args, **kwargs)

        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    class Rows(AccelVectorStore):
        async def asimilarity_search(self, *args: Any, **kwargs: Any) -> Any:
            return await super().asimilarity_search(*args, **kwargs)

    facts: dict[str, Any] = {name: value for name, value in FACTS.items() if name != withheld}
    if withheld != NOTHING:
        accel.register(Model, **facts)
    accel.register(Rows, **facts)
    return Hosted(Model, Rows)


async def built(program: Program, engines: Engines, hosted: Hosted, arm: str) -> Any:
    parts = engines.parts(f"{program.name} {arm}")
    parts.store.__class__ = hosted.store
    if documents := list(program.documents):
        await parts.store.aadd_texts(documents, ids=[str(number) for number in range(len(documents))])
    model = hosted.model(model=parts.llm.model, engine=parts.llm.engine, streaming=hosted.streaming)
    return program.build(replace(parts, llm=model, light_llm=model))


async def asked(program: Program, engines: Engines, graph: Any) -> tuple[float, Any]:
    """Seconds and output of the last request."""
    took_s, output = 0.0, None
    for value in program.inputs[:REQUESTS]:
        await engines.forget_prefixes()
        began = clock.now_s()
        output = await graph.ainvoke(value)
        took_s = clock.now_s() - began
        accel.settle()
    return took_s, plain(output)


def follow(line: str, hosted: Hosted) -> dict[str, Any]:
    """Does what a line says; the options that it gives `accelerate`."""
    call = ast.parse(line, mode="eval").body
    assert isinstance(call, ast.Call)
    given = {str(each.arg): each.value for each in call.keywords}
    if ast.unparse(call.func) == "accel.accelerate":
        return {name: ast.literal_eval(value) for name, value in given.items()}
    if "streaming" in given:
        hosted.streaming = True
    else:
        exec(line, {"accel": accel, "Model": hosted.model, "Rows": hosted.store})  # noqa: S102 - as a user would
    return {}


@dataclass
class Compared:
    lines: list[tuple[str, float]]
    said_s: float
    gained_s: float
    left_s: float
    """What the limit left to gain."""
    equal: bool


def compared(name: str, withheld: str) -> Compared:
    """What the report promised for all of its lines together, and what following them gained."""
    (program,) = programs([name])
    engines = simulated("7b", "virtual")

    async def main() -> Compared:
        components = hosted(withheld)
        fast = accel.accelerate(await built(program, engines, components, "as it is"))
        fast.plan.follows = lambda loop=None: True  # what waits for a declaration rests, and then tells of a run before
        before_s, output = await asked(program, engines, fast)
        report = fast.report()
        options: dict[str, Any] = {}
        for each in report.declarations:
            options |= follow(each.line, components)
        advised = accel.accelerate(await built(program, engines, components, "advised"), **options)
        after_s, same = await asked(program, engines, advised)
        assert report.limit is not None
        return Compared(
            [(each.line, each.gain_s) for each in report.declarations],
            report.advice.gain_s,
            before_s - after_s,
            before_s - report.limit.makespan_s,
            output == same,
        )

    try:
        return engines.run(main)
    finally:
        accel_local.shutdown()


def check(found: Compared) -> None:
    assert found.equal
    assert 0.05 < found.said_s <= found.left_s + 1e-6, "never more than the limit leaves"
    assert abs(found.gained_s - found.said_s) <= found.said_s / 3, found


@pytest.mark.parametrize(("withheld", "name"), ONE_FACT, ids=lambda value: value)
def test_one_line(withheld: str, name: str) -> None:
    found = compared(name, withheld)
    assert len(found.lines) == 1
    assert found.lines[0][1] == pytest.approx(found.said_s)
    check(found)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_lines(name: str) -> None:
    """Each promises what it gains with the others. Their sum is several times what all of them gain."""
    found = compared(name, NOTHING)
    assert len(found.lines) > 1
    assert sum(gain_s for _, gain_s in found.lines) > found.said_s * 4 / 3
    check(found)


def test_what_the_limit_leaves_nothing_of_is_not_said() -> None:
    """A guess may let a call go sooner that its engine then serves no sooner."""
    found = compared("guarded_answer", "speculate")
    assert found.equal and not found.lines and found.said_s == 0.0


def test_what_early_calls_have_delayed_is_no_part_of_what_calls_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a run worked out anew would be longer than it was, and a line promise to gain what was never lost."""
    monkeypatch.setattr(gates, "_beside", lambda calls: 0)  # early calls leave no places free: so they delay
    (program,) = programs(["letter_placeholders"])
    engines = simulated("7b", "virtual")

    async def main() -> None:
        fast = accel.accelerate(await built(program, engines, hosted("concurrency"), "delayed"))
        took_s, _ = await asked(program, engines, fast)
        last, counts = fast.plan.last, fast.plan.history[-1]
        assert counts.delayed_s > 0.1
        assert sum(call.delayed_s for call in last.calls) == pytest.approx(counts.delayed_s)
        assert Replay(fast.plan, last, Settings()).run(frozenset()).end_s == pytest.approx(took_s)

    try:
        engines.run(main)
    finally:
        accel_local.shutdown()
