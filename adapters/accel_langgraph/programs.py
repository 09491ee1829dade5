"""How commands run graphs and chains, and compare what they give (`accel.commands.kinds`)."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.types import StreamMode

from accel.commands.kinds import Told
from accel.errors import ConfigurationError
from accel.parts.methods.methods import Method
from accel.text.values import is_handed_on

from .awaited import only_awaited
from .chains import is_chain
from .components import install_all
from .views import is_made_up, view_message

STREAMS: tuple[StreamMode, ...] = ("values", "updates", "messages", "custom")
_NEEDS_A_SAVER = "Compile it where it is made, and name the compiled graph: graph = builder.compile(checkpointer=...)."


class GraphPrograms:
    """Graphs, entrypoints and chains."""

    def finished(self, obj: Any) -> Any:
        if isinstance(obj, StateGraph):
            try:
                return obj.compile()
            except Exception as error:
                raise ConfigurationError(f"The graph can't be compiled: {error}", _NEEDS_A_SAVER) from error
        return obj if isinstance(obj, Pregel) or is_chain(obj) else None

    def asynchronous(self, obj: Any) -> bool:
        return only_awaited(obj)

    def ways(self, obj: Any) -> tuple[str, ...]:
        return "invoke", "stream"

    def given(self, obj: Any, value: Any) -> Any:
        return value  # LangGraph's reducers and LangChain's models take messages as JSON has them

    def run(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None:
        made, options = _config(obj, config)
        if way != "stream":
            told["result"] = obj.invoke(value, made, **options)
        elif isinstance(obj, Pregel):
            hear = _heard(told)
            for chunk in obj.stream(value, made, stream_mode=list(STREAMS), subgraphs=True, **options):
                hear(*chunk)
        else:
            told["stream"] = None
            for chunk in obj.stream(value, made):
                told["stream"] = told["result"] = _added(told["stream"], chunk)

    async def arun(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None:
        made, options = _config(obj, config)
        if way != "stream":
            told["result"] = await obj.ainvoke(value, made, **options)
        elif isinstance(obj, Pregel):
            hear = _heard(told)
            async for chunk in obj.astream(value, made, stream_mode=list(STREAMS), subgraphs=True, **options):
                hear(*chunk)
        else:
            told["stream"] = None
            async for chunk in obj.astream(value, made):
                told["stream"] = told["result"] = _added(told["stream"], chunk)

    def plain(self, value: Any) -> Any:
        return _without_diary(view_message(value)) if isinstance(value, BaseMessage) else value

    def place(self) -> tuple[Hashable, Hashable]:
        """The superstep of a run of a graph, and the task."""
        metadata = (var_child_runnable_config.get() or {}).get("metadata") or {}
        task = str(metadata.get("langgraph_checkpoint_ns", ""))
        return (task.rpartition("|")[0], metadata.get("langgraph_step")), task

    def install(self) -> None:
        install_all()

    def dump(self, value: Any) -> Any:
        if isinstance(value, ChatResult):
            return {"answers": [_dumped(each) for each in value.generations], "llm_output": value.llm_output}
        return _dumped(value) if isinstance(value, ChatGeneration) else value

    def load(self, tree: Any) -> Any:
        if isinstance(tree, dict) and tree.keys() == {"answers", "llm_output"}:
            return ChatResult(generations=[self.load(each) for each in tree["answers"]], llm_output=tree["llm_output"])
        if isinstance(tree, dict) and tree.keys() == {"said", "info"}:
            is_chunk = isinstance(tree["said"], BaseMessageChunk)
            made = ChatGenerationChunk if is_chunk else ChatGeneration
            return made(message=tree["said"], generation_info=tree["info"])
        return tree

    def chunk(self, method: Method, result: Any) -> Any:
        if not isinstance(result, ChatResult):
            return result
        first = result.generations[0]
        return ChatGenerationChunk(message=_as_chunk(first.message), generation_info=first.generation_info)


PROGRAMS = GraphPrograms()


def _config(obj: Any, given: Mapping[str, Any]) -> tuple[RunnableConfig, dict[str, Any]]:
    """For one run, on a thread of its own if it is saved; and what goes beside it."""
    config: Any = {key: value for key, value in given.items() if key != "context"}
    if getattr(obj, "checkpointer", None):
        config["configurable"] = {**config.get("configurable", {}), "thread_id": str(uuid4())}
    return config, {"context": given["context"]} if "context" in given else {}


# --- streams


class _heard:
    """Chunks of a graph's streams, by mode. What a model said piece by piece becomes one message: how an endpoint cuts
    it is no two times the same."""

    def __init__(self, told: Told) -> None:
        self._told = told
        for mode in STREAMS:
            told[mode] = []
        self._places: dict[Any, int] = {}

    def __call__(self, namespace: tuple[str, ...], mode: str, chunk: Any) -> None:
        if mode == "values" and not namespace:
            self._told["result"] = chunk
        if mode != "messages":
            self._told[mode].append([namespace, chunk] if namespace else chunk)
            return
        message, metadata = chunk
        key = namespace, metadata.get("langgraph_checkpoint_ns"), message.id
        known = self._places.get(key)
        messages = self._told[mode]
        if known is not None and isinstance(message, BaseMessageChunk):
            messages[known]["message"] = messages[known]["message"] + message
            return
        self._places[key] = len(messages)
        messages.append({"message": message, "node": metadata.get("langgraph_node"), "metadata": metadata})


def _added(before: Any, chunk: Any) -> Any:
    """Chunks of a chain together, as LangChain adds them up; a list of them where they can't be added."""
    if before is None:
        return chunk
    try:
        return before + chunk
    except TypeError:
        return [*before, chunk] if isinstance(before, list) else [before, chunk]


# --- answers of models


_DIARY = re.compile(r"^(id|created(_at)?|system_fingerprint|service_tier|headers|.*_duration|.*_tokens?_details)$")
"""What providers say of the making of an answer: times, ids, what was in a cache."""


def _without_diary(tree: Any) -> dict[str, Any]:
    """A message without what differs from call to call by itself."""
    return {key: _undated(value) if is_handed_on(key) else value for key, value in tree.items()}


def _undated(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _undated(each) for key, each in value.items() if not _DIARY.match(str(key))}


def _dumped(generation: ChatGeneration) -> dict[str, Any]:
    message = generation.message
    if is_made_up(message.id):  # as two answers of a run have two
        message = message.model_copy(update={"id": None})
    return {"said": message, "info": generation.generation_info}


def _as_chunk(message: BaseMessage) -> BaseMessageChunk:
    """The chunk of which LangChain makes this message again."""
    if isinstance(message, BaseMessageChunk):
        return message
    fields = {name: getattr(message, name) for name in type(message).model_fields if name != "type"}
    calls: list[Any] = []
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            calls.append({**call, "args": json.dumps(call["args"]), "type": "tool_call_chunk", "index": len(calls)})
        for wrong in message.invalid_tool_calls:
            said = {key: wrong.get(key) for key in ("name", "args", "id")}
            calls.append({**said, "type": "tool_call_chunk", "index": len(calls)})
    for name in ("tool_calls", "invalid_tool_calls"):
        fields.pop(name, None)
    return AIMessageChunk(**fields, tool_call_chunks=calls)
