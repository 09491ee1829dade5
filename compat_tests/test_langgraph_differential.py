"""Ordinary LangGraph programs, plain, accelerated and forced (see `accel_langgraph.testing`): results are equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableParallel
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, RetryPolicy, Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from compat_tests.answers import ModelError
from compat_tests.fakes import LocalChat, Parts
from compat_tests.graphs import TOPICS, Topic, lines, research
from compat_tests.probe import Probe

ACCEL_DIFFERENTIAL = True

Compared = Callable[..., None]


def test_typed_dict_state(parts: Parts) -> None:
    fast = research(parts).compile()
    for topic in TOPICS:
        assert fast.invoke({"topic": topic})["answer"]


def test_pydantic_state(parts: Parts) -> None:
    class State(BaseModel):
        topic: str
        answer: str = ""

    def explain(state: State) -> dict[str, Any]:
        first = parts.local.invoke(f"Explain {state.topic}").content
        return {"answer": parts.local.invoke(f"Shorten {first}").content}

    graph = StateGraph(State)
    graph.add_node("explain", explain)
    graph.add_edge(START, "explain")
    compiled = graph.compile()
    for topic in TOPICS:
        compiled.invoke({"topic": topic})
    with pytest.raises(ValueError):
        compiled.invoke({"topic": ["not a string"]})  # type: ignore[arg-type]


def test_dataclass_state(parts: Parts) -> None:
    @dataclass
    class State:
        topic: str
        answer: str = ""

    graph = StateGraph(State)
    graph.add_node("explain", lambda state: {"answer": parts.local.invoke(f"Explain {state.topic}").content})
    graph.add_node("shorten", lambda state: {"answer": parts.local.invoke(f"Shorten {state.answer}").content})
    graph.add_edge(START, "explain")
    graph.add_edge("explain", "shorten")
    compiled = graph.compile()
    for topic in TOPICS:
        compiled.invoke(State(topic))  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "debug", "tasks", ["values", "messages", "tasks"]])
def test_stream_modes(parts: Parts, mode: Any) -> None:
    fast = research(parts).compile()
    for topic in TOPICS:
        assert list(fast.stream({"topic": topic}, stream_mode=mode))


@pytest.mark.parametrize("mode", ["values", "messages", ["updates", "messages"]])
async def test_async_stream_modes(parts: Parts, mode: Any) -> None:
    fast = research(parts).compile()
    for topic in TOPICS:
        assert [chunk async for chunk in fast.astream({"topic": topic}, stream_mode=mode)]


def test_custom_stream(parts: Parts) -> None:
    def node(state: Topic) -> Topic:
        write = get_stream_writer()
        for number in range(3):
            write({"number": number, "said": parts.local.invoke(f"Say {number} of {state['topic']}").content})
        return {"answer": "done"}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    fast = graph.compile()
    for topic in TOPICS:
        list(fast.stream({"topic": topic}, stream_mode=["custom", "updates"]))


@pytest.mark.parametrize("mode", ["updates", "messages"])
def test_subgraph(parts: Parts, mode: Any) -> None:
    graph = StateGraph(Topic)
    graph.add_node("research", research(parts).compile())
    graph.add_node("check", lambda state: {"answer": parts.local.invoke(f"Check {state['answer']}").content})
    graph.add_edge(START, "research")
    graph.add_edge("research", "check")
    fast = graph.compile()
    assert [name for name, _ in fast.get_subgraphs()] == ["research"]
    for topic in TOPICS:
        list(fast.stream({"topic": topic}, stream_mode=mode, subgraphs=True))


def test_drawing_and_schemas_are_unchanged(parts: Parts, compared: Compared) -> None:
    fast = research(parts).compile(name="research")
    compared(
        fast.get_graph().draw_mermaid(),
        fast.get_input_jsonschema(),
        fast.get_output_jsonschema(),
        fast.name,
        type(fast).__name__,
    )


def test_send_keeps_order(parts: Parts) -> None:
    def spread(state: Topic) -> list[Send]:
        return [Send("note", {"topic": query}) for query in state["queries"]]

    graph = StateGraph(Topic)
    graph.add_node("expand", lambda state: {"queries": lines(parts.local.invoke(f"List lines on {state['topic']}"))})
    graph.add_node("note", lambda state: {"notes": [parts.local.invoke(f"Note on {state['topic']}").content]})
    graph.add_node("answer", lambda state: {"answer": parts.local.invoke("Sum up " + str(state["notes"])).content})
    graph.add_edge(START, "expand")
    graph.add_conditional_edges("expand", spread, ["note"])
    graph.add_edge("note", "answer")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})


def test_reducers_of_parallel_branches(parts: Parts) -> None:
    graph = StateGraph(Topic)
    graph.add_node("join", lambda state: {"answer": parts.local.invoke("Join " + ", ".join(state["notes"])).content})
    for name in ("b", "a", "c"):

        def branch(state: Topic, name: str = name) -> Topic:
            return {"notes": [str(parts.local.invoke(f"{name} of {state['topic']}").content)]}

        graph.add_node(name, branch)
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})


def test_two_writers_raise(parts: Parts) -> None:
    graph = StateGraph(Topic)
    for name in ("a", "b"):
        graph.add_node(name, lambda state: {"answer": parts.local.invoke(f"About {state['topic']}").content})
        graph.add_edge(START, name)
    fast = graph.compile()
    for topic in TOPICS:
        with pytest.raises(InvalidUpdateError):
            fast.invoke({"topic": topic})


def test_command_goto(parts: Parts) -> None:
    def judge(state: Topic) -> Command[Any]:
        verdict = parts.local.invoke(f"Say yes or no: {state['topic']}").content
        return Command(goto="keep" if verdict == "yes" else "drop", update={"answer": verdict})

    graph = StateGraph(Topic)
    graph.add_node("judge", judge, destinations=("keep", "drop"))
    for name in ("keep", "drop"):
        graph.add_node(name, lambda state: {"notes": [parts.local.invoke(f"Why {state['answer']}").content]})
    graph.add_edge(START, "judge")
    fast = graph.compile()
    for number in range(8):
        fast.invoke({"topic": f"quartz {number}"})


def test_recursion_limit(parts: Parts) -> None:
    graph = StateGraph(Topic)
    graph.add_node("again", lambda state: {"answer": parts.local.invoke(f"More on {state['topic']}").content})
    graph.add_edge(START, "again")
    graph.add_edge("again", "again")
    fast = graph.compile()
    for topic in TOPICS:
        with pytest.raises(GraphRecursionError):
            fast.invoke({"topic": topic}, {"recursion_limit": 4})


def test_loop_back(parts: Parts) -> None:
    def write(state: Topic) -> Topic:
        return {"notes": [str(parts.local.invoke(f"On {state['topic']}: {len(state['notes'])}").content)]}

    graph = StateGraph(Topic)

    graph.add_node("write", write)
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", lambda state: "write" if len(state["notes"]) < 3 else END, ["write", END])
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic, "notes": []})


def test_retry_policy(parts: Parts, compared: Compared) -> None:
    attempts: list[str] = []

    def node(state: Topic) -> Topic:
        said = str(parts.local.invoke(f"Explain {state['topic']}").content)
        attempts.append(said)
        if len(attempts) % 3:
            raise ModelError("try again")
        return {"answer": said}

    graph = StateGraph(Topic)
    policy = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3, retry_on=ModelError)
    graph.add_node("node", node, retry_policy=policy)
    graph.add_edge(START, "node")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})
    compared(attempts)


def test_predecessor_raises(parts: Parts, compared: Compared) -> None:
    """The next node's model is never asked after a guard has raised."""

    def guard(state: Topic) -> Topic:
        parts.local.invoke(f"Look at {state['topic']}")
        if "33" in state["topic"]:
            raise ValueError(f"blocked {state['topic']}")
        return {}

    graph = StateGraph(Topic)
    graph.add_node("guard", guard)
    graph.add_node("ask", lambda state: {"answer": parts.remote.invoke(f"Explain {state['topic']}").content})
    graph.add_edge(START, "guard")
    graph.add_edge("guard", "ask")
    fast = graph.compile()
    for topic in TOPICS:
        if "33" in topic:
            with pytest.raises(ValueError):
                fast.invoke({"topic": topic})
        else:
            fast.invoke({"topic": topic})


def test_mutation_of_shared_lists(parts: Parts, compared: Compared) -> None:
    def node(state: Topic) -> Topic:
        state["queries"].append(str(parts.local.invoke(f"Explain {state['topic']}").content))
        return {"answer": "".join(state["queries"])}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_node("next", lambda state: {"notes": [parts.local.invoke(" ".join(state["queries"])).content]})
    graph.add_edge(START, "node")
    graph.add_edge("node", "next")
    fast = graph.compile()
    shared: list[str] = []
    for topic in TOPICS:
        fast.invoke({"topic": topic, "queries": shared})
    compared(shared)


def test_mutation_of_messages(parts: Parts) -> None:
    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    def node(state: State) -> dict[str, Any]:
        reply = parts.local.invoke(state["messages"])
        reply.content = f"{reply.content} (edited)"
        again = parts.local.invoke([*state["messages"], reply, HumanMessage("Sure?")])
        return {"messages": [reply, again]}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"messages": [HumanMessage(topic, id="given")]})


def test_chains_in_nodes(parts: Parts) -> None:
    class Answer(BaseModel):
        topic: str
        items: list[str]

    ask = ChatPromptTemplate.from_template("Answer in JSON about {topic}.") | parts.local
    parsed = ask | PydanticOutputParser(pydantic_object=Answer)
    both = RunnableParallel(text=ask | StrOutputParser(), data=ask | JsonOutputParser(), model=parsed)
    then = both | RunnableLambda(lambda found: {"topic": found["data"]["topic"]}) | ask | JsonOutputParser()

    def node(state: Topic, config: RunnableConfig) -> Topic:
        return {"answer": str(then.invoke({"topic": state["topic"]}, config))}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    fast = graph.compile()
    for topic in TOPICS:
        fast.invoke({"topic": topic})


def test_a_chain_is_a_node(parts: Parts) -> None:
    prompt = ChatPromptTemplate.from_template("Explain {topic}.")
    graph = StateGraph(Topic)
    graph.add_node("chain", prompt | parts.local | StrOutputParser() | (lambda text: {"answer": text}))
    graph.add_edge(START, "chain")
    fast = graph.compile()
    assert len(fast.batch([{"topic": topic} for topic in TOPICS])) == len(TOPICS)


def test_two_models_of_one_class(parts: Parts) -> None:
    """Which of two equal-looking models is asked must not be confused."""
    dry, wet = LocalChat(Probe(0), style="dry"), LocalChat(Probe(0), style="wet")

    def node(state: Topic) -> Topic:
        model = dry if len(state["topic"]) % 2 else wet
        return {"answer": str(model.invoke(f"Explain {state['topic']}").content)}

    graph = StateGraph(Topic)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    fast = graph.compile()
    for topic in (*TOPICS, "willow", "river", "willow"):
        fast.invoke({"topic": topic})
