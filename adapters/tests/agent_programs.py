"""Agents as people write them, on a model that follows a script: the question says how often it calls tools."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, create_react_agent, tools_condition
from langgraph.types import Command

import accel
from adapters.tests.core_fakes import UnknownChat, World

Called = list[tuple[str, dict[str, Any]]]


def digest(*texts: str) -> str:
    return hashlib.sha1("|".join(texts).encode()).hexdigest()[:8]


def rounds_of(messages: Sequence[BaseMessage]) -> int:
    return sum(1 for message in messages if isinstance(message, AIMessage) and message.tool_calls)


class Scripted(UnknownChat):
    """Declared pure and local. It says what it is asked for by the script, and answers as a provider's client does."""

    script: Callable[[Sequence[BaseMessage], list[str]], Called]

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools], **kwargs)

    def _result(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        calls = self.script(messages, [each["function"]["name"] for each in kwargs.get("tools", ())])
        shown = [f"{message.type}: {message.content} {getattr(message, 'tool_calls', '')}" for message in messages]
        key = digest(*shown)
        said = f"answer {key} after {len(messages)}" if not calls else "Let me look." if len(calls) > 1 else ""
        self._world.serve(self.label, f"{rounds_of(messages)} rounds of {messages[0].content}")
        message = AIMessage(
            said,
            id=f"chatcmpl-{key}",
            tool_calls=[{"name": name, "args": args, "id": f"call_{key}_{i}"} for i, (name, args) in enumerate(calls)],
            response_metadata={"finish_reason": "tool_calls" if calls else "stop"},
            usage_metadata={"input_tokens": len(shown), "output_tokens": 7, "total_tokens": len(shown) + 7},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


class Streaming(Scripted):
    """Streams a call of a tool after the other; `gates` named `call N` hold the N-th one back."""

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        whole: Any = self._result(messages, kwargs).generations[0].message
        yield ChatGenerationChunk(message=AIMessageChunk(whole.content, id=whole.id))
        for i, call in enumerate(whole.tool_calls):
            gate = self._world.gates.get(f"call {i}")
            assert gate is None or gate.wait(20)
            for part in ({"name": call["name"], "args": "", "id": call["id"]}, {"args": json.dumps(call["args"])}):
                chunk: Any = {"name": None, "id": None, "index": i, "type": "tool_call_chunk", **part}
                yield ChatGenerationChunk(message=AIMessageChunk("", id=whole.id, tool_call_chunks=[chunk]))
        last = {"usage_metadata": whole.usage_metadata, "response_metadata": whole.response_metadata}
        yield ChatGenerationChunk(message=AIMessageChunk("", id=whole.id, **last))


accel.register(Scripted, pure=True, local=True, concurrency=16)
accel.register(Streaming, pure=True, local=True, concurrency=16, streams_equal=True)


def research(messages: Sequence[BaseMessage], names: list[str]) -> Called:
    """'... 2x3 ...' asks for two rounds of three searches each; every other round also looks at the weather."""
    asked = next(str(message.content) for message in messages if isinstance(message, HumanMessage))
    wanted = re.search(r"(\d)x(\d)", asked)
    done = rounds_of(messages)
    if wanted is None or not names or done >= int(wanted[1]):
        return []
    key = digest(asked, str(messages[-1].content), str(done))
    calls: Called = [("search", {"query": f"part {i} of {key}"}) for i in range(int(wanted[2]))]
    if done % 2 == 0:
        calls.append(("weather", {"city": f"City of {key}"}))
    return calls


def as_pure(function: Callable[..., Any]) -> BaseTool:
    return tool(accel.pure(function, concurrency=8))


class Doing(BaseTool):
    """A tool of a class that an agent has several of, as those of a server's tools are."""

    does: Callable[..., Any]

    def _run(self, **given: Any) -> Any:
        return self.does(**given)


accel.register(Doing, readonly=True, local=True, concurrency=8)


def as_one_class(function: Callable[..., Any]) -> BaseTool:
    made = tool(function)
    return Doing(name=made.name, description=made.description, args_schema=made.args_schema, does=function)


def tools_of(world: World, declare: Callable[[Callable[..., Any]], BaseTool] = as_pure) -> list[BaseTool]:
    def search(query: str) -> str:
        """Search the web."""
        return world.serve("search", f"{query} was found to be {digest(query)}.")

    def weather(city: str, days: int = 3) -> dict[str, Any]:
        """What the weather will be."""
        return {"city": world.serve("weather", city), "days": days, "sky": digest(city)}

    return [declare(search), declare(weather)]


def prebuilt(world: World) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated, and in many programs
        return create_react_agent(
            Scripted(world, script=research), tools_of(world), prompt="You are curious.", name="it"
        )


def created(world: World) -> Any:
    return create_agent(Scripted(world, script=research), tools_of(world), system_prompt="You are curious.")


def with_tool_node(world: World) -> Any:
    """Between model and tools somebody keeps the books; what must be known by then, the test says."""
    llm = Scripted(world, script=research).bind_tools(tools_of(world))

    def agent(state: MessagesState) -> Any:
        return {"messages": [llm.invoke([SystemMessage("You are curious."), *state["messages"]])]}

    def audit(state: MessagesState) -> Any:
        world.node("audit")
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("audit", audit)
    graph.add_node("tools", ToolNode(tools_of(world)))
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "audit")
    graph.add_conditional_edges("audit", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


def with_a_loop(
    world: World, model: type[Scripted] = Scripted, declare: Callable[[Callable[..., Any]], BaseTool] = as_pure
) -> Any:
    """The tools are called one after the other."""
    tools = tools_of(world, declare)
    by_name = {each.name: each for each in tools}
    llm = model(world, script=research).bind_tools(tools)

    def llm_call(state: MessagesState) -> Any:
        return {"messages": [llm.invoke([SystemMessage("You are curious."), *state["messages"]])]}

    def tool_node(state: MessagesState) -> Any:
        world.node("tool_node")
        result = []
        last: Any = state["messages"][-1]
        for tool_call in last.tool_calls:
            observation = by_name[tool_call["name"]].invoke(tool_call["args"])
            result.append(ToolMessage(content=str(observation), tool_call_id=tool_call["id"]))
        return {"messages": result}

    def should_continue(state: MessagesState) -> Literal["tool_node", "__end__"]:
        last: Any = state["messages"][-1]
        return "tool_node" if last.tool_calls else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("llm_call", llm_call)
    graph.add_node("tool_node", tool_node)
    graph.add_edge(START, "llm_call")
    graph.add_conditional_edges("llm_call", should_continue, ["tool_node", END])
    graph.add_edge("tool_node", "llm_call")
    return graph.compile()


# --- a chain of agents ----------------------------------------------------------------------------------------------


class Desk(MessagesState):
    company: str
    date: str
    market: str
    news: str
    decision: str


def analysing(messages: Sequence[BaseMessage], names: list[str]) -> Called:
    """One round or two, as the company's name says; in the second one indicators."""
    said = str(messages[0].content)
    company, date = said.rpartition("Company: ")[2], said.partition("Date: ")[2][:10]
    done = rounds_of(messages)
    if not names or done > len(company) % 2:
        return []
    if "get_news" in names:
        return [("get_news", {"company": company, "date": date, "about": f"round {done}"})]
    many = [("get_price", {"company": company, "date": date})]
    return many if not done else [("get_indicator", {"company": company, "name": name}) for name in ("rsi", "macd")]


def trading_desk(world: World) -> Any:
    """Analysts one after the other, each with its tools and a clean desk, and a manager who reads their reports."""
    llm = Scripted(world, script=analysing)

    def get_price(company: str, date: str) -> str:
        """The price."""
        return world.serve("get_price", f"{company} on {date}: {digest(company, date)}")

    def get_indicator(company: str, name: str) -> str:
        """An indicator."""
        return world.serve("get_indicator", f"{name} of {company}: {digest(company, name)}")

    def get_news(company: str, date: str, about: str) -> str:
        """What happened."""
        return world.serve("get_news", f"{about} {company} until {date}: {digest(company, date, about)}")

    teams = {"market": [as_pure(get_price), as_pure(get_indicator)], "news": [as_pure(get_news)]}
    graph = StateGraph(Desk)

    def analyst(field: str) -> Callable[[Desk], Any]:
        def node(state: Desk) -> Any:
            prompt = ChatPromptTemplate.from_messages(
                [
                    ("system", "You analyse {topic} with {tool_names}. Date: {date} Company: {company}"),
                    MessagesPlaceholder(variable_name="messages"),
                ]
            )
            prompt = prompt.partial(topic=field, tool_names=", ".join(each.name for each in teams[field]))
            prompt = prompt.partial(date=state["date"], company=state["company"])
            result = (prompt | llm.bind_tools(teams[field])).invoke({"messages": state["messages"]})
            return {"messages": [result], field: "" if result.tool_calls else result.content}

        return node

    def clear(state: Desk) -> Any:
        removed = [RemoveMessage(id=str(message.id)) for message in state["messages"]]
        return {"messages": [*removed, HumanMessage(content="Continue")]}

    def goes_on(field: str) -> Callable[[Desk], str]:
        def route(state: Desk) -> str:
            last: Any = state["messages"][-1]
            return f"tools_{field}" if last.tool_calls else f"clear_{field}"

        return route

    def manager(state: Desk) -> Any:
        return {"decision": llm.invoke(f"Decide.\nMarket: {state['market']}\nNews: {state['news']}").content}

    for field, after in (("market", "news"), ("news", "manager")):
        graph.add_node(field, analyst(field))
        graph.add_node(f"tools_{field}", ToolNode(teams[field]))
        graph.add_node(f"clear_{field}", clear)
        graph.add_conditional_edges(field, goes_on(field), [f"tools_{field}", f"clear_{field}"])
        graph.add_edge(f"tools_{field}", field)
        graph.add_edge(f"clear_{field}", after)
    graph.add_node("manager", manager)
    graph.add_edge(START, "market")
    graph.add_edge("manager", END)
    return graph.compile()


# --- a supervisor ---------------------------------------------------------------------------------------------------


def supervising(messages: Sequence[BaseMessage], names: list[str]) -> Called:
    """Hands over to one after the other; those search."""
    left = [name for name in names if name.startswith("transfer_to_")]
    if not left:
        return research(messages, names)
    done = sum(1 for message in messages if isinstance(message, ToolMessage) and message.name in left)
    return [(left[done], {})] if done < len(left) else []


def handoff_to(agent: str) -> BaseTool:
    name = f"transfer_to_{agent}"

    def hand_over(state: Annotated[Any, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
        told = ToolMessage(f"Successfully transferred to {agent}", name=name, tool_call_id=tool_call_id)
        return Command(goto=agent, update={"messages": [*state["messages"], told]}, graph=Command.PARENT)

    return tool(name, description=f"Ask the {agent}.")(hand_over)


def supervisor(world: World) -> Any:
    llm = Scripted(world, script=supervising)
    team = {"researcher": tools_of(world), "writer": tools_of(world)[:1]}
    graph = StateGraph(MessagesState)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        boss = create_react_agent(llm, [handoff_to(name) for name in team], prompt="You manage.", name="supervisor")
        graph.add_node("supervisor", boss, destinations=(*team, END))
        for name, tools in team.items():
            graph.add_node(name, create_react_agent(llm, tools, prompt=f"You are the {name}.", name=name))
            graph.add_edge(name, "supervisor")
    graph.add_edge(START, "supervisor")
    return graph.compile()
