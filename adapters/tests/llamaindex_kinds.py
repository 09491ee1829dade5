"""One small program of every kind of LlamaIndex object, as its documentation writes them, on components that answer at
once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    KeywordTableIndex,
    KnowledgeGraphIndex,
    PropertyGraphIndex,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
)
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.extractors import KeywordExtractor, SummaryExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from .llamaindex_clerk import Caller, Clerk, Kind, Letters, index, of_topic, told
from .llamaindex_engines import ENGINES
from .llamaindex_given import GIVEN

# --- chat engines


def chat_engine(mode: Any, answers: str = "accumulate") -> Any:
    memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
    if mode == "simple":
        return SimpleChatEngine.from_defaults(llm=Clerk(), memory=memory)
    more = {"response_mode": answers} if mode == "condense_question" else {}
    return index().as_chat_engine(chat_mode=mode, llm=Clerk(), memory=memory, similarity_top_k=3, **more)


def turns(question: str) -> list[str]:
    return [question, f"And what else about {question.split()[-1]}", "Why is that so?"]


def chat(engine: Any, question: str) -> str:
    engine.reset()
    said = [told(engine.chat(turn)) for turn in turns(question)]
    return repr([said, [message.content for message in engine.chat_history]])


async def achat(engine: Any, question: str) -> str:
    engine.reset()
    said = [told(await engine.achat(turn)) for turn in turns(question)]
    return repr([said, [message.content for message in engine.chat_history]])


def stream_chat(engine: Any, question: str) -> str:
    engine.reset()
    said = []
    for turn in turns(question):
        response = engine.stream_chat(turn)
        said.append(["".join(response.response_gen), told(response)])
    return repr([said, [message.content for message in engine.chat_history]])


async def astream_chat(engine: Any, question: str) -> str:
    engine.reset()
    said = []
    for turn in turns(question):
        response = await engine.astream_chat(turn)
        said.append(["".join([part async for part in response.async_response_gen()]), told(response)])
    return repr([said, [message.content for message in engine.chat_history]])


# --- workflows and agents


class Found(Event):
    nodes: list[Any]
    question: str


class Notes(Workflow):
    def __init__(self, retriever: Any, model: Clerk, **options: Any) -> None:
        super().__init__(**options)
        self.retriever, self.model = retriever, model

    @step
    async def retrieve(self, ev: StartEvent) -> Found:
        return Found(nodes=await self.retriever.aretrieve(ev.question), question=ev.question)

    @step
    async def take_notes(self, ev: Found) -> StopEvent:
        notes = [
            str(await self.model.acomplete(f"Take a note on {ev.question} from {found.node.get_content()}"))
            for found in ev.nodes
        ]
        return StopEvent(result=str(await self.model.acomplete("Join these notes:\n" + "\n".join(notes))))


def notes() -> Any:
    return Notes(index().as_retriever(similarity_top_k=3), Clerk(), timeout=60)


async def run_notes(flow: Any, question: str) -> str:
    return str(await flow.run(question=question))


def agent(streaming: bool = False) -> Any:
    clerk = Clerk()

    def look_up(topic: str) -> str:
        """Look a topic up."""
        return str(clerk.complete(f"Facts about {topic}"))

    return ReActAgent(tools=[FunctionTool.from_defaults(look_up)], llm=Clerk(), streaming=streaming)


def function_tools() -> list[FunctionTool]:
    clerk = Clerk()

    async def look_up(topic: str) -> str:
        """Look a topic up."""
        return str(await clerk.acomplete(f"Facts about {topic}"))

    async def measure(topic: str) -> str:
        """Say how large a topic is."""
        return str(await clerk.acomplete(f"How large is all about {topic}"))

    return [FunctionTool.from_defaults(async_fn=look_up), FunctionTool.from_defaults(async_fn=measure)]


def function_agent(streaming: bool = False) -> Any:
    return FunctionAgent(tools=function_tools(), llm=Caller(), streaming=streaming)


def two_agents() -> Any:
    researcher = FunctionAgent(
        name="researcher", description="Looks topics up.", tools=function_tools(), llm=Caller(),
        can_handoff_to=["writer"],
    )  # fmt: skip
    writer = FunctionAgent(name="writer", description="Writes.", llm=Caller(), can_handoff_to=[])
    return AgentWorkflow([researcher, writer], root_agent="researcher")


async def run_agent(obj: Any, question: str) -> str:
    """With everything that it tells on its way."""
    handler = obj.run(question)
    events = [[type(event).__name__, event.dict()] async for event in handler.stream_events()]
    response = await handler
    return told([str(response), [[call.tool_name, call.tool_kwargs] for call in response.tool_calls], events])


# --- ingestion and builds


def splitter() -> SentenceSplitter:
    return SentenceSplitter(chunk_size=60, chunk_overlap=0, id_func=lambda number, doc: f"{doc.id_}-{number}")


def pipeline() -> Any:
    extractors = [KeywordExtractor(llm=Clerk(), num_workers=1), SummaryExtractor(llm=Clerk(), num_workers=1)]
    return IngestionPipeline(transformations=[splitter(), *extractors], disable_cache=True)


def documents(question: str) -> list[Document]:
    return [Document(text=node.text, id_=node.id_) for node in of_topic(question)[:2]]


def ingest(obj: Any, question: str) -> str:
    return told(obj.run(documents=documents(question), show_progress=False))


async def aingest(obj: Any, question: str) -> str:
    return told(await obj.arun(documents=documents(question), show_progress=False))


def held(made: Any) -> str:
    """What an index is made of."""
    texts = sorted(node.get_content() for node in made.docstore.docs.values())
    graph = getattr(made, "graph_store", None) or getattr(made, "property_graph_store", None)
    relations = sorted(map(repr, graph.get_triplets())) if isinstance(made, PropertyGraphIndex) else []
    table = graph.to_dict() if isinstance(made, KnowledgeGraphIndex) else None
    return told([texts, sorted(told(made.index_struct.to_dict())), relations, table])


def built(**options: Any) -> Callable[[Any, str], str]:
    def build(cls: Any, question: str) -> str:
        made = cls.from_documents(
            documents(question), transformations=[splitter()],
            **{name: kind() for name, kind in options.items()},
        )  # fmt: skip
        told_first = held(made)
        made.insert(documents(question)[0].model_copy(update={"id_": "one more"}))
        return repr([told_first, held(made)])

    return build


KINDS: dict[str, Kind] = {
    **ENGINES,
    **GIVEN,
    "simple chat": Kind(lambda: chat_engine("simple"), chat, achat, early=False),
    "context chat": Kind(lambda: chat_engine("context"), chat, achat, early=False),
    "condense chat": Kind(lambda: chat_engine("condense_question"), chat, achat),
    "condense plus context chat": Kind(lambda: chat_engine("condense_plus_context"), chat, achat, early=False),
    "simple chat, streamed": Kind(lambda: chat_engine("simple"), stream_chat, astream_chat, early=False, orderly=False),
    "context chat, streamed": Kind(
        lambda: chat_engine("context"), stream_chat, astream_chat, early=False, orderly=False
    ),
    "condense chat, streamed": Kind(
        lambda: chat_engine("condense_question", "compact"), stream_chat, astream_chat, orderly=False
    ),
    "condense plus context chat, streamed": Kind(
        lambda: chat_engine("condense_plus_context"), stream_chat, astream_chat, early=False, orderly=False
    ),
    "workflow": Kind(notes, run_notes, run_notes),
    "agent": Kind(agent, run_agent, run_agent),
    "agent, streamed": Kind(lambda: agent(streaming=True), run_agent, run_agent),
    "function agent": Kind(function_agent, run_agent, run_agent),
    "function agent, streamed": Kind(lambda: function_agent(streaming=True), run_agent, run_agent),
    "two agents": Kind(two_agents, run_agent, run_agent),
    "extractors": Kind(pipeline, ingest, aingest, orderly=False),
    "vector index": Kind(lambda: VectorStoreIndex, built(embed_model=Letters), early=False),
    "summary index": Kind(lambda: SummaryIndex, built(), early=False),
    "document summary index": Kind(lambda: DocumentSummaryIndex, built(llm=Clerk, embed_model=Letters), early=False),
    "tree index": Kind(lambda: TreeIndex, built(llm=Clerk, num_children=lambda: 2)),
    "keyword table index": Kind(lambda: KeywordTableIndex, built(llm=Clerk)),
    "knowledge graph index": Kind(lambda: KnowledgeGraphIndex, built(llm=Clerk)),
    "property graph index": Kind(
        lambda: PropertyGraphIndex, built(llm=Clerk, embed_model=Letters), early=False, orderly=False
    ),
}
