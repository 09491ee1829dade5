"""How commands run LlamaIndex's engines and workflows, and compare what they give (`accel.commands.kinds`)."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.indices.base import BaseIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import NodeParser
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers.base import BaseSynthesizer
from llama_index.core.schema import BaseNode, Document, NodeWithScore, TextNode, TransformComponent
from llama_index.core.workflow import Event, Workflow

from accel.commands.kinds import Told
from accel.errors import ConfigurationError
from accel.parts.methods.methods import Method
from accel.text.values import Opaque, leaves, snapshot

from .components import install_all
from .kinds import methods_of

_ASKED = (BaseQueryEngine, BaseRetriever, BaseChatEngine)


class EnginePrograms:
    """Whatever `accelerate` takes of LlamaIndex, but indexes, which are only filled."""

    def finished(self, obj: Any) -> Any:
        if isinstance(obj, BaseIndex):
            raise ConfigurationError(
                "An index by itself answers nothing.", "Name its engine: app.py:index.as_query_engine."
            )
        return obj if not isinstance(obj, type) and methods_of(type(obj)) is not None else None

    def asynchronous(self, obj: Any) -> bool:
        return isinstance(obj, Workflow)

    def ways(self, obj: Any) -> tuple[str, ...]:
        if isinstance(obj, Workflow):
            return ("run",)
        name = _main(obj)[0]
        return (name, "stream") if isinstance(obj, BaseChatEngine) else (name,)

    def given(self, obj: Any, value: Any) -> Any:
        """Text for engines, retrievers and agents; else a dict of arguments, in which nodes and documents are texts."""
        if isinstance(obj, _ASKED):
            if not isinstance(value, str):
                raise ValueError(f"{type(obj).__name__} takes text, not {type(value).__name__}")
            return value
        if isinstance(obj, IngestionPipeline) and isinstance(value, list):
            return {"documents": [Document(text=text) for text in value]}
        if isinstance(obj, TransformComponent) and isinstance(value, list):
            kind = Document if isinstance(obj, NodeParser) else TextNode
            return {"nodes": [kind(text=text) for text in value]}
        if isinstance(obj, Workflow) and isinstance(value, str):
            return {"user_msg" if isinstance(obj, AgentWorkflow | BaseWorkflowAgent) else "input": value}
        if not isinstance(value, Mapping):
            raise ValueError(f"{type(obj).__name__} takes a dict of arguments, not {type(value).__name__}")
        if isinstance(obj, BaseSynthesizer | BaseNodePostprocessor) and "nodes" in value:
            return {**value, "nodes": [NodeWithScore(node=TextNode(text=text)) for text in value["nodes"]]}
        return dict(value)

    def run(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None:
        args, named = _arguments(obj, value, config)
        result = getattr(obj, _method(obj, way)[0])(*args, **named)
        if isinstance(result, StreamingResponse | StreamingAgentChatResponse):
            told["stream"] = []
            for part in result.response_gen or ():
                told["stream"].append(part)
            _read(told, result)
        else:
            told["result"] = result

    async def arun(self, obj: Any, value: Any, way: str, told: Told, config: Mapping[str, Any]) -> None:
        args, named = _arguments(obj, value, config)
        if isinstance(obj, Workflow):
            handler = obj.run(*args, **named)
            told["events"] = []
            async for event in handler.stream_events():
                told["events"].append(event)
            told["result"] = await handler
            return
        result = await getattr(obj, _method(obj, way)[1])(*args, **named)
        if isinstance(result, AsyncStreamingResponse | StreamingAgentChatResponse):
            told["stream"] = []
            parts = result.response_gen if isinstance(result, AsyncStreamingResponse) else result.async_response_gen()
            async for part in parts:
                told["stream"].append(part)
            _read(told, result)
        else:
            told["result"] = result

    def plain(self, value: Any) -> Any:
        if isinstance(value, Response | PydanticResponse | AgentChatResponse):
            return {
                "response": str(value),
                "source_nodes": list(value.source_nodes),
                "metadata": value.metadata,
                "sources": [str(source) for source in getattr(value, "sources", ())],
            }
        if isinstance(value, NodeWithScore):
            return {"node": value.node, "score": value.score}
        if isinstance(value, BaseNode):
            return {"node": type(value).__name__, "text": value.get_content(), "metadata": value.metadata}
        if isinstance(value, Event):
            said = {**dict(value.items()), **_declared(value)}
            return {"event": type(value).__name__, **{name: each for name, each in said.items() if name != "raw"}}
        return value

    def place(self) -> tuple[Hashable, Hashable]:
        return None, None

    def install(self) -> None:
        install_all()

    def dump(self, value: Any) -> Any:
        if isinstance(value, ChatResponse):
            kept = {"additional_kwargs": value.additional_kwargs, "delta": value.delta, "raw": _kept(value.raw)}
            return {"chat": value.message, **kept}
        if isinstance(value, CompletionResponse):
            kept = {"additional_kwargs": value.additional_kwargs, "delta": value.delta, "raw": _kept(value.raw)}
            return {"completion": value.text, **kept}
        return value

    def load(self, tree: Any) -> Any:
        if isinstance(tree, dict) and {"additional_kwargs", "delta", "raw"} < tree.keys():
            fields = {name: tree[name] for name in ("additional_kwargs", "delta", "raw")}
            if "chat" in tree:
                return ChatResponse(message=tree["chat"], **fields)
            return CompletionResponse(text=tree["completion"], **fields)
        return tree

    def chunk(self, method: Method, result: Any) -> Any:
        text = result.text if isinstance(result, CompletionResponse) else result.message.content
        return result.model_copy(update={"delta": text or ""})


PROGRAMS = EnginePrograms()


def _main(obj: Any) -> tuple[str, str]:
    return (methods_of(type(obj)) or ())[0]


def _method(obj: Any, way: str) -> tuple[str, str]:
    """The method of this way, and its coroutine."""
    return ("stream_chat", "astream_chat") if way == "stream" else _main(obj)


def _arguments(obj: Any, value: Any, config: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Of one run. A conversation begins anew with each, and nodes may be changed in place."""
    if isinstance(obj, BaseChatEngine):
        obj.reset()
    if isinstance(obj, BaseNodePostprocessor | TransformComponent):
        value = copy.deepcopy(value)
    return ((), {**value, **config}) if isinstance(value, Mapping) else ((value,), dict(config))


def _read(told: Told, result: Any) -> None:
    """A stream that was read to its end, as the answer that it is."""
    sources = [str(source) for source in getattr(result, "sources", ())]
    told["result"] = {
        "response": "".join(told["stream"]),
        "source_nodes": list(result.source_nodes),
        "metadata": getattr(result, "metadata", None),
        "sources": sources,
    }


def _declared(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name, None) for name in type(event).model_fields}


def _kept(raw: Any) -> Any:
    """What a provider said beside an answer, if it can be written down."""
    return None if any(isinstance(leaf, Opaque) for _, leaf in leaves(snapshot(raw, exact=True))) else raw
