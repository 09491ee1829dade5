"""Copies of accelerated objects, and what comes out of pickles, are as those of the objects themselves: accelerated."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document

import accel
from accel import accelerate
from accel.insight import Insight
from adapters.tests.core_fakes import TOPICS, Chat, State, World, three, train
from adapters.tests.llamaindex_programs import QUESTIONS, Program

TOPIC = "beaches of Portugal"


def shout(text: Any) -> str:
    return str(text).upper()


def node(state: State) -> State:
    return {"a": f"of {state['q']}"}


def small_graph(**options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", node)
    builder.add_edge(START, "a")
    return builder.compile(**options)


@entrypoint()
def flow(q: str) -> str:
    return q.upper()


PROMPT = ChatPromptTemplate.from_template("tell of {q}")
MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "graph": (small_graph, lambda graph: graph.invoke({"q": TOPIC})),
    "graph with memory": (
        lambda: small_graph(checkpointer=InMemorySaver()),
        lambda graph: graph.invoke({"q": TOPIC}, {"configurable": {"thread_id": "1"}}),
    ),
    "graph of closures": (lambda: three(World(), Chat(World())), lambda graph: graph.invoke({"q": TOPIC})),
    "entrypoint": (lambda: flow, lambda made: made.invoke(TOPIC)),
    "sequence": (lambda: PROMPT | shout, lambda chain: chain.invoke({"q": TOPIC})),
    "sequence of a closure": (lambda: PROMPT | (lambda prompt: f"{prompt}"), lambda chain: chain.invoke({"q": TOPIC})),
    "lambda": (lambda: RunnableLambda(shout), lambda chain: chain.invoke(TOPIC)),
    "parallel": (lambda: RunnableParallel(loud=shout, as_is=RunnablePassthrough()), lambda chain: chain.invoke(TOPIC)),
    "bound": (lambda: (PROMPT | shout).with_config(tags=["x"]), lambda chain: chain.invoke({"q": TOPIC})),
    "retrying": (lambda: (PROMPT | shout).with_retry(), lambda chain: chain.invoke({"q": TOPIC})),
    "query engine": (lambda: Program("compact").engine, lambda engine: str(engine.query(QUESTIONS[0]))),
    "retriever": (
        lambda: Program("compact").index.as_retriever(),
        lambda made: [found.node.text for found in made.retrieve(QUESTIONS[0])],
    ),
    "index": (
        lambda: Program("compact").index,
        lambda index: [found.node.text for found in index.as_retriever().retrieve(QUESTIONS[0])],
    ),
    "pipeline": (
        lambda: IngestionPipeline(transformations=[SentenceSplitter()]),
        lambda pipeline: [n.get_content() for n in pipeline.run(documents=[Document(text="One. Two.")])],
    ),
}
WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda obj: pickle.loads(pickle.dumps(obj)),
    "model_copy": lambda obj: obj.model_copy(),
    "deep model_copy": lambda obj: obj.model_copy(deep=True),
}


def outcome(work: Callable[[Any], Any], obj: Any) -> Any:
    """What comes of it, or the kind of error, or of what says nothing else."""
    try:
        made = work(obj)
        return made if type(made) is not object else object
    except Exception as error:  # noqa: BLE001 - compared
        return type(error)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MADE)
def test_copies_are_as_the_objects_own(name: str, way: str) -> None:
    make, use = MADE[name]
    original = make()
    fast = accelerate(original)
    plain, copied = outcome(WAYS[way], original), outcome(WAYS[way], fast)
    if isinstance(plain, type):
        assert copied is plain
        return
    assert isinstance(copied, type(original))
    assert isinstance(copied, Insight) and copied is not fast
    assert type(copied).__name__ == type(plain).__name__
    assert set(vars(copied)) - {"_accel"} == set(vars(plain))
    assert (copied == fast) == (plain == original) or way == "pickle"
    assert (copied.plan is fast.plan) == (way != "pickle")
    assert not isinstance(original, Insight) and not isinstance(plain, Insight)
    assert outcome(use, copied) == outcome(use, plain)  # LangGraph's own deep copies of graphs don't run
    assert use(fast) == use(original)
    assert accel.settle()
    assert copied.plan.runs > 0 or name == "index"


def test_a_copy_goes_by_what_the_original_has_learnt() -> None:
    world = World()
    fast = accelerate(three(world, Chat(world)))
    train(fast)
    world.forget()
    world.hooks["b"] = lambda: world.wait_early("Beta asks")
    assert copy.copy(fast).invoke({"q": TOPIC})["b"] == f"answer to <Beta asks: {TOPIC}>"


def test_a_deep_copy_goes_by_it_with_components_of_its_own() -> None:
    """Its store is another one than the original's, and so is what is found there."""
    program = Program("accumulate", fusion=1)
    fast = accelerate(program.engine)
    for question in QUESTIONS[:3]:
        fast.query(question)
        assert accel.settle()
    deep, plain = copy.deepcopy(fast), copy.deepcopy(program.engine)
    assert deep.plan is fast.plan
    assert str(deep.query(QUESTIONS[3])) == str(plain.query(QUESTIONS[3]))
    assert accel.settle()
    assert deep.plan.runs == 4


def test_what_comes_out_of_a_pickle_learns_for_itself() -> None:
    fast = accelerate(PROMPT | shout)
    for topic in TOPICS:
        fast.invoke({"q": topic})
    assert accel.settle()
    copied = pickle.loads(pickle.dumps(fast))
    assert copied.plan.runs == 0 and fast.plan.runs == 2
    assert copied.invoke({"q": TOPIC}) == fast.invoke({"q": TOPIC})


def test_what_is_set_on_one_is_copied_with_it() -> None:
    fast: Any = accelerate(small_graph())
    fast.name = "mine"
    assert copy.copy(fast).name == copy.deepcopy(fast).name == "mine"
    assert isinstance(fast.copy(), CompiledStateGraph) and fast.copy().plan is fast.plan
    tagged = fast.with_config(tags=["x"])
    assert isinstance(tagged, CompiledStateGraph) and tagged.plan is fast.plan
    assert copy.deepcopy(tagged).config["tags"] == ["x"]


def test_nodes_that_are_pure_stay_so() -> None:
    fast = accelerate(small_graph(), pure_nodes=["a"], egress="inputs")
    for copied in (copy.copy(fast), copy.deepcopy(fast)):
        assert copied._accel.pure_nodes == {"a"}
        assert copied._accel.settings == fast._accel.settings
    assert copy.copy(fast).invoke({"q": TOPIC}) == fast.invoke({"q": TOPIC})


def test_a_chain_goes_on_in_another_one() -> None:
    world = World()
    fast = accelerate(PROMPT | Chat(world) | StrOutputParser())
    longer = fast | shout
    assert isinstance(longer, Runnable)
    assert longer.invoke({"q": TOPIC}) == fast.invoke({"q": TOPIC}).upper()
    assert copy.deepcopy(longer.first if hasattr(longer, "first") else longer) is not None
