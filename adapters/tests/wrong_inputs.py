"""What users may get wrong, and what Accel says then: ``python -m adapters.tests.wrong_inputs`` writes
docs/wrong_inputs.md anew, by trying all of it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

import accel
from accel.errors import AccelError, AccelWarning
from accel.frameworks import installed
from adapters.tests.core_fakes import Chat, World, three, train

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "wrong_inputs.md"
_HEAD = """# Wrong inputs

You get what Accel says when it is given what can't be meant. This page is written by
`python -m adapters.tests.wrong_inputs`, which tries all of it. `graph` is a compiled graph with the nodes a, b and c,
`fast` is it accelerated, after two runs; `fresh` before the first one. Every error is an `accel.AccelError`, every
warning an `accel.AccelWarning`.
"""

CASES = {
    "What is accelerated": (
        "accelerate(42)",
        "accelerate(builder)  # a StateGraph",
        "accelerate(model)",
        "accelerate(embeddings)",
        "accelerate(BaseQueryEngine)",
        "accelerate(type(graph))",
        "accelerate(graph)  # langgraph 1.9.0 is installed",
        "accelerate(graph)  # langchain-core 1.2.7 is installed",
    ),
    "Options": (
        "accelerate(graph, speculat='certain')",
        "accelerate(graph, cache='plan.json')",
        "accelerate(graph, speculate='certian')",
        "accelerate(graph, speculate=None)",
        "accelerate(graph, egress='input')",
        "accelerate(graph, pure_nodes='a')",
        "accelerate(graph, pure_nodes=True)",
        "accelerate(graph, pure_nodes=[len])",
        "accelerate(retrieving, pure_nodes=['retreive'])  # its only node is retrieve",
        "accelerate(graph, pure_nodes=['retrieve'])",
        "accelerate(reads_config, pure_nodes=['a'])  # whose node takes the configuration",
        "accelerate(chain, pure_nodes=['a'])  # a chain",
        "accelerate(graph, plan_scope='')",
        "accelerate(graph, plan_scope=7)",
        "accelerate(fast, speculate='off')",
    ),
    "Budgets": (
        "accelerate(graph, budget=5)",
        "accelerate(graph, budget={'max_issued': 100})",
        "accel.Budget(max_outstanding=0)",
        "accel.Budget(max_issued=-1)",
        "accel.Budget(max_issued=1.5)",
        "accel.Budget(max_outstanding=True)",
        "accel.Budget(waste=2)",
        "accel.Budget(waste=float('nan'))",
        "accel.Budget(waste='2 %')",
        "accel.Budget(max_outstandig=3)",
        "accel.Budget(caps=100)",
        "accel.Budget(caps=[100])",
        "accel.Cap()",
        "accel.Cap(calls=0)",
        "accel.Cap(tokens=1.5)",
        "accel.Cap(calls=5, window_s=0)",
        "accel.Cap(money=1.0)",
        "accel.Cap(money='1 EUR', input_per_million=2.5)",
        "accel.Cap(calls=5, per=7)",
        "accel.Cap(calls=5, per='tenant_id')",
        "accel.Cap(calls=5, windw_s=60)",
    ),
    "Plans": (
        "accelerate(graph, plan='nowhere/plan.json')",
        "accelerate(graph, plan='folder')",
        "accelerate(graph, plan='notes.txt')  # some text",
        "accelerate(graph, plan='old.json')  # of an older version of Accel",
        "accelerate(graph, plan='damaged.json')",
        "accelerate(graph, plan=5)",
        "accelerate(retrieving, plan=fast.plan)",
        "accelerate(chain, plan='plan.json')  # which fast has saved",
        "accel.load_plan({})",
        "accel.save_plan(fresh, 'fresh.json')",
        "accel.save_plan(fast, 'nowhere/plan.json')",
        "accel.save_plan(fast, 'folder')",
        "accel.save_plan(fast, 1)",
        "accel.save_plan(silent, 'silent.json')  # which has run, and called nothing",
    ),
    "Learning and looking": (
        "fresh.warmup([])",
        "fresh.warmup({'q': 'beaches of Portugal'})",
        "fresh.warmup('beaches of Portugal')",
        "fresh.warmup(None)",
        "fresh.warmup([{'q': 'beaches'}])",
        "fresh.warmup([{'q': 'beaches'}, {'q': 'beaches'}])",
        "fresh.warmup([{'q': 'beaches'}, {'q': 'rivers'}], config=[{}])",
        "fresh.warmup([{'q': 'beaches'}, {'q': 'rivers'}], config='thread-1')",
        "fresh.warmup([{'q': 'beaches'}, {'q': 'rivers'}], confg={})",
        "fresh.warmup([{'q': 'beaches'}, {'q': 'rivers'}], config=['thread-1', 'thread-2'])",
        "accel.warmup(engine, ['beaches', 'rivers'], config={})  # a query engine",
        "accel.warmup(engine, [{'query': 'beaches'}, {'query': 'rivers'}])",
        "accel.warmup(workflow, ['beaches', 'rivers'])",
        "accel.warmup(awaited, [{'q': 'beaches'}, {'q': 'rivers'}])  # whose node is a coroutine",
        "accel.warmup(awaited_chain, ['beaches', 'rivers'])",
        "accel.warmup(accelerate(VectorStoreIndex), ['beaches', 'rivers'])",
        "accel.timeline(fresh, 'run.html')",
        "accel.timeline(fast, 'nowhere/run.html')",
        "accel.timeline(fast, 'run.pdf')",
        "accel.timeline(fast, 'run')",
        "accel.report(fast).priced(input_per_million=-1, output_per_million=10)",
        "accel.report(fast).priced(input_per_million=2.5, output_per_million='10')",
        "accel.report(fast).priced(input_per_million=2.5, output_per_million=None)",
        "accel.report(graph)",
        "accel.explain(type(graph))",
    ),
    "Batches": (
        "accel.batch(graph, [{'q': 'beaches'}])",
        "accel.batch(fast, 'beaches')",
        "accel.batch(fast, [{'q': 'beaches'}], max_concurrency=0)",
        "accel.batch(fast, [{'q': 'beaches'}], max_concurency=1)",
        "accel.batch(workflow, ['beaches', 'rivers'])",
        "fast.batch({'q': 'beaches'})",
        "fast.batch(None)",
        "fast.batch([{'q': 'beaches'}], resume=7)",
        "fast.batch([{'q': 'beaches'}], resume='nowhere/answers.jsonl')",
        "fast.batch([{'q': 'beaches'}], resume='notes.txt')",
        "fast.batch([{'q': 'rivers'}], resume='answers.jsonl')  # which fast has written, of beaches",
        "silent.batch([{'q': 'beaches'}], resume='answers.jsonl')",
    ),
    "Checks and measurements": (
        "accel.check(graph, {'q': 'beaches'})",
        "accel.check(graph, 'beaches')",
        "accel.check(graph, [{'q': 'beaches'}], rounds='3')",
        "accel.check(graph, [{'q': 'beaches'}], rounds=0)",
        "accel.bench(graph, {'q': 'beaches'})",
        "accel.bench(graph, 'beaches')",
        "accel.bench(graph, [])",
        "accel.bench(graph, [{'q': 'beaches'}], concurrency='16')",
        "accel.bench(graph, [{'q': 'beaches'}], concurrency=0)",
        "accel.bench(graph, [{'q': 'beaches'}], concurrency=(1, -1))",
        "accel.bench(graph, [{'q': 'beaches'}], concurrency=())",
        "accel.bench(graph, [{'q': 'beaches'}], rounds='3')",
        "accel.bench(graph, [{'q': 'beaches'}], rounds=0)",
        "accel.bench(graph, [{'q': 'beaches'}], warm=-1)",
    ),
    "Modes": (
        "accel.set_mode('of')",
        "accel.mode('quiet')",
        "accelerate(graph)  # with ACCEL=wach",
        "fast.invoke({'q': 'beaches'}, {'metadata': {'accel': False}})",
        "fast.invoke({'q': 'beaches'}, {'metadata': {'accel': 'watched'}})",
        "fast.invoke({'q': 'beaches'}, {'metadata': {'accel_deadline_s': 0}})",
        "accel.deadline('2 s')",
    ),
    "Declarations": (
        "accel.register(Client, pur=True)",
        "accel.register(Client, thread_safe=True)",
        "accel.register(Client, readonly='yes')",
        "accel.register(Client, concurrency=0)",
        "accel.register(Client, concurrency='many')",
        "accel.register(client.search, readonly=True)",
        "accel.register(score, pure=True)  # a function",
        "accel.register(Client.search, readonly=True)",
        "accel.register(lambda text: text.upper(), pure=True)",
        "accel.register('Client', readonly=True)",
        "accel.register({}, readonly=True)",
        "accel.register(graph, readonly=True)",
        "accel.register(function_tool, readonly=True)  # a FunctionTool of LlamaIndex",
        "accel.register(Client, methods=[], readonly=True)",
        "accel.register(Client, methods=[Client.search], readonly=True)",
        "accel.register(Client, methods=['search'])",
        "accel.register(Client, methods=['serch'], readonly=True)",
        "accel.register(Client, methods=['rows'], readonly=True)  # which yields",
        "accel.register('https://api.example.com/v1', readonly=True)",
        "accel.register('https://api.example.com', concurrency=4)",
        "accel.register(Client, prefix_caching=True)",
        "accel.register(hosted, prefix_caching=True)  # a ChatOpenAI of a public service",
        "accel.pure(Client)",
        "accel.pure(score('a'))  # what it gives",
        "accel.pure(function_tool)  # a FunctionTool of LlamaIndex",
        "accel.pure(look_up)  # a tool of LangChain",
        "accel.pure(rows)  # which yields",
        "accel.pure('text'.upper)",
        "accel.pure(score, concurrency=0)",
        "accel.pure(score, locale=False)",
    ),
}


class Client:
    """Of some service."""

    def search(self, text: str) -> list[str]:
        return [text]

    def rows(self) -> Iterator[str]:
        yield ""


class Flow(Workflow):
    @step
    async def only(self, event: StartEvent) -> StopEvent:
        return StopEvent()


def score(text: str) -> int:
    return len(text)


def rows(text: str) -> Iterator[str]:
    yield text


def _names(folder: Path) -> dict[str, Any]:
    """What the lines speak of."""
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.runnables import RunnableConfig, RunnableLambda
    from langchain_core.tools import StructuredTool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, StateGraph
    from llama_index.core import SummaryIndex, VectorStoreIndex
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.llms import MockLLM
    from llama_index.core.tools import FunctionTool
    from pydantic import SecretStr

    def configured(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        return {}

    def with_node(name: str, node: Any) -> Any:
        return StateGraph(dict).add_node(name, node).add_edge(START, name).compile()

    async def later(state: Any) -> Any:
        return state

    world = World()
    graph = three(world, Chat(world))
    fast, silent = accel.accelerate(graph), accel.accelerate(with_node("a", lambda state: {}))
    train(fast)
    silent.invoke({})
    accel.save_plan(fast, folder / "plan.json")
    fast.batch([{"q": "beaches"}], resume=folder / "answers.jsonl")
    (folder / "folder").mkdir()
    (folder / "notes.txt").write_text("Dear diary")
    (folder / "old.json").write_text('{"accel_plan": 1}')
    (folder / "damaged.json").write_text((folder / "plan.json").read_text().replace('"decode"', '"decoed"'))
    return {
        "accel": accel,
        "accelerate": accel.accelerate,
        "graph": graph,
        "builder": graph.builder,
        "fast": fast,
        "silent": silent,
        "retrieving": with_node("retrieve", lambda state: {}),
        "reads_config": with_node("a", configured),
        "chain": RunnableLambda(score) | RunnableLambda(str),
        "awaited": accel.accelerate(with_node("a", later)),
        "awaited_chain": accel.accelerate(RunnableLambda(later) | RunnableLambda(str)),
        "workflow": accel.accelerate(Flow()),
        "engine": accel.accelerate(SummaryIndex([]).as_query_engine(llm=MockLLM())),
        "model": Chat(world),
        "embeddings": DeterministicFakeEmbedding(size=8),
        "BaseQueryEngine": BaseQueryEngine,
        "VectorStoreIndex": VectorStoreIndex,
        "Client": Client,
        "client": Client(),
        "hosted": ChatOpenAI(model="m", base_url="https://models.example.com/v1", api_key=SecretStr("k")),
        "function_tool": FunctionTool.from_defaults(score),
        "look_up": StructuredTool.from_function(score, name="look_up", description="Looks up."),
        "score": score,
        "rows": rows,
    }


def said(code: str, names: dict[str, Any]) -> str:
    """What Accel says of a line: the kind of its error or warning, and the message. Raises AssertionError if it says
    nothing, or names no remedy."""
    names["fresh"] = accel.accelerate(names["graph"])
    with warnings.catch_warnings(record=True) as warned, _installed(code):
        warnings.simplefilter("always")
        try:
            eval(code, names)  # noqa: S307 - as a user would
        except AccelError as error:
            assert error.remedy, code
            return f"{type(error).__name__}: {error}"
    assert [each.category for each in warned] == [AccelWarning], code
    (warning,) = warned
    return f"{warning.category.__name__}: {warning.message}"


@contextmanager
def _installed(code: str) -> Iterator[None]:
    """As long as the line runs, the version that its comment says is installed is found first, and the environment is
    what it says."""
    comment = code.partition("#")[2].split()
    if "is installed" not in code:
        with pytest.MonkeyPatch.context() as patch:
            if "with" in comment:
                patch.setenv(*comment[-1].split("="))
                patch.setattr("accel.run.switch._was_set", False)
            yield
        return
    package, version = comment[:2]
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / f"{package.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")

        sys.path.insert(0, folder)
        installed.cache_clear()
        try:
            yield
        finally:
            sys.path.remove(folder)
            installed.cache_clear()


@contextmanager
def world() -> Iterator[dict[str, Any]]:
    """What the lines speak of, in a folder of its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield _names(Path(folder))
        finally:
            os.chdir(before)


def document() -> str:
    """All lines with what Accel says, as Markdown."""
    parts = [_HEAD]
    with world() as names:
        for title, lines in CASES.items():
            shown = "\n\n".join(f">>> {line}\n{said(line, names)}" for line in lines)
            parts.append(f"## {title}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
