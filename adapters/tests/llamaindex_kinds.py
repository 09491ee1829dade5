"""One small program of every kind of LlamaIndex object, as its documentation writes them, on components that answer at
once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    KeywordTableIndex,
    SummaryIndex,
    TreeIndex,
    VectorStoreIndex,
)
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.evaluation import BatchEvalRunner, FaithfulnessEvaluator, RelevancyEvaluator
from llama_index.core.extractors import KeywordExtractor, SummaryExtractor
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.query_engine import (
    CustomQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import BaseSynthesizer, TreeSummarize, get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector
from llama_index.core.tools import FunctionTool, QueryEngineTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

import accel

from .llamaindex_programs import TOPICS, BatchedLetters, Scribe, _node, _number

NODES = [_node(topic, part) for topic in TOPICS for part in range(4)]
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}")


class Clerk(Scribe):
    """Also chooses, ranks, judges, asks sub-questions and uses a tool, as LlamaIndex's prompts want it."""

    def _answer(self, prompt: str) -> str:
        said = super()._answer(prompt)
        if "<User Question>" in prompt:
            names = list(dict.fromkeys(re.findall(r'^ *"(\w+)": "', prompt.rpartition("<Tools>")[2], re.M)))
            about = prompt.rpartition("<User Question>")[2].strip().splitlines()[0]
            parts = [{"sub_question": f"{part} of: {about}", "tool_name": names[number % len(names)]}
                     for number, part in enumerate(("Beginning", "Middle", "End"))]  # fmt: skip
            return "```json\n" + json.dumps({"items": parts}, indent=1) + "\n```"
        if "Some choices are given" in prompt:
            several = "return the top choices" in prompt
            return json.dumps([{"choice": n + 1, "reason": "It fits."} for n in range(1 + several)])
        if "Let's try this now" in prompt:
            count = len(re.findall(r"Document \d+:", prompt.rpartition("Let's try this now")[2]))
            return "\n".join(f"Doc: {n + 1}, Relevance: {1 + _number(f'{prompt}{n}') % 9}" for n in range(count))
        if "YES or NO" in prompt:
            return "YES"
        if "Action Input" in prompt:
            if "Observation:" in prompt.rpartition("Current Conversation")[2]:
                return f"Thought: I can answer without using any more tools.\nAnswer: {said}"
            topic = re.findall(r"about (\w+)\?", prompt)[-1]
            return f'Thought: I need to use a tool.\nAction: look_up\nAction Input: {{"topic": "{topic}"}}'
        return said


accel.register(Clerk, local=True, concurrency=16, streams_equal=True, twins=True)


class Letters(BatchedLetters):
    pass


accel.register(Letters, pure=True, local=True, concurrency=16, elementwise=True, twins=True)


@dataclass
class Kind:
    make: Callable[[], Any]
    ask: Callable[[Any, str], Any]
    aask: Callable[[Any, str], Any] | None = None
    """Its coroutine; None where there is none worth a test."""
    early: bool = True
    """Whether anything of it can be early."""


def index(nodes: list[Any] = NODES) -> VectorStoreIndex:
    return VectorStoreIndex(list(nodes), embed_model=Letters())


def of_topic(question: str) -> list[Any]:
    topic = question.split()[-1].strip("?")
    return [node for node in NODES if node.node_id.startswith(topic)]


def told(result: Any) -> str:
    """All that a result says, but for ids made at random."""
    if hasattr(result, "source_nodes"):
        sources = [node.model_dump() for node in result.source_nodes]
        result = [str(result), sources, getattr(result, "metadata", None)]
    elif isinstance(result, list):
        result = [item.model_dump() if hasattr(item, "model_dump") else item for item in result]
    return _IDS.sub("id", repr(result))


def query(engine: Any, question: str) -> str:
    return told(engine.query(question))


async def aquery(engine: Any, question: str) -> str:
    return told(await engine.aquery(question))


# --- query engines


class OwnEngine(CustomQueryEngine):
    retriever: BaseRetriever
    synthesizer: BaseSynthesizer

    def custom_query(self, query_str: str) -> Any:
        return self.synthesizer.synthesize(query_str, self.retriever.retrieve(query_str))


def custom() -> Any:
    synthesizer = get_response_synthesizer(llm=Clerk(), response_mode="accumulate")
    return OwnEngine(retriever=index().as_retriever(similarity_top_k=4), synthesizer=synthesizer)


class Fresh(CustomQueryEngine):
    """Makes its model for each query."""

    retriever: BaseRetriever

    def custom_query(self, query_str: str) -> Any:
        model = Clerk()
        found = self.retriever.retrieve(query_str)
        notes = [str(model.complete(f"A note on {query_str} from {one.node.get_content()}")) for one in found]
        return str(Clerk().complete("\n\n".join(notes)))


def tools(model: Clerk, **options: Any) -> list[QueryEngineTool]:
    engines = [index(NODES[:12]).as_query_engine(llm=model, **options), index(NODES[12:]).as_query_engine(llm=model)]
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"about {name}")
        for engine, name in zip(engines, ("land", "sea"), strict=True)
    ]


def sub_questions() -> Any:
    model = Clerk()
    return SubQuestionQueryEngine.from_defaults(
        tools(model), llm=model, question_gen=LLMQuestionGenerator.from_defaults(llm=model), use_async=False,
        verbose=False, response_synthesizer=get_response_synthesizer(llm=model),
    )  # fmt: skip


def router(several: bool) -> Any:
    model = Clerk()
    selector = LLMMultiSelector.from_defaults(llm=model) if several else LLMSingleSelector.from_defaults(llm=model)
    return RouterQueryEngine.from_defaults(
        tools(model, response_mode="accumulate", similarity_top_k=3), selector=selector, llm=model,
        summarizer=TreeSummarize(llm=model),
    )  # fmt: skip


def hyde() -> Any:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=3)
    return TransformQueryEngine(engine, query_transform=HyDEQueryTransform(llm=Clerk()))


def retry() -> Any:
    engine = index().as_query_engine(llm=Clerk(), response_mode="accumulate", similarity_top_k=3)
    return RetryQueryEngine(engine, RelevancyEvaluator(llm=Clerk()))


def reranked() -> Any:
    rerank = LLMRerank(llm=Clerk(), choice_batch_size=3, top_n=2)
    return index().as_query_engine(llm=Clerk(), similarity_top_k=9, node_postprocessors=[rerank])


def chosen_by_model() -> Any:
    return SummaryIndex(NODES[:12]).as_query_engine(llm=Clerk(), retriever_mode="llm", choice_batch_size=4)


def recursive() -> Any:
    below = {topic: index([n for n in NODES if n.node_id.startswith(topic)]).as_retriever() for topic in TOPICS}
    above = index([IndexNode(text=f"All about {topic}.", index_id=topic, id_=f"to {topic}") for topic in TOPICS])
    retriever = RecursiveRetriever("top", retriever_dict={"top": above.as_retriever(similarity_top_k=2), **below})
    return RetrieverQueryEngine.from_args(retriever, llm=Clerk(), response_mode="accumulate")


# --- what answers from given nodes, chats, evaluators


def synthesizer(mode: str) -> Any:
    return get_response_synthesizer(
        llm=Clerk(context_window=360 if mode == "tree_summarize" else 4096), response_mode=mode
    )


def synthesize(obj: Any, question: str) -> str:
    return told(obj.synthesize(question, [NodeWithScore(node=node, score=1.0) for node in of_topic(question)]))


async def asynthesize(obj: Any, question: str) -> str:
    return told(await obj.asynthesize(question, [NodeWithScore(node=node, score=1.0) for node in of_topic(question)]))


def chat_engine(mode: str) -> Any:
    memory = ChatMemoryBuffer.from_defaults(token_limit=3000)
    if mode == "simple":
        return SimpleChatEngine.from_defaults(llm=Clerk(), memory=memory)
    more = {"response_mode": "accumulate"} if mode == "condense_question" else {}
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


def evaluated(question: str) -> dict[str, Any]:
    return {"query": question, "response": f"It is {question}", "contexts": [node.text for node in of_topic(question)]}


def evaluate(obj: Any, question: str) -> str:
    return told([obj.evaluate(**evaluated(question))])


async def aevaluate(obj: Any, question: str) -> str:
    return told([await obj.aevaluate(**evaluated(question))])


def batch() -> Any:
    evaluators = {"faithful": FaithfulnessEvaluator(llm=Clerk()), "relevant": RelevancyEvaluator(llm=Clerk())}
    return BatchEvalRunner(evaluators, workers=8)


async def abatch(obj: Any, question: str) -> str:
    given = [evaluated(f"{number}: {question}") for number in range(3)]
    found = await obj.aevaluate_response_strs(
        queries=[one["query"] for one in given], response_strs=[one["response"] for one in given],
        contexts_list=[of_topic(question) and [node.text for node in of_topic(question)] for _ in given],
    )  # fmt: skip
    return told(sorted((name, [result.model_dump() for result in results]) for name, results in found.items()))


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


def agent() -> Any:
    clerk = Clerk()

    def look_up(topic: str) -> str:
        """Look a topic up."""
        return str(clerk.complete(f"Facts about {topic}"))

    return ReActAgent(tools=[FunctionTool.from_defaults(look_up)], llm=Clerk(), streaming=False)


async def run_agent(obj: Any, question: str) -> str:
    response = await obj.run(question)
    return repr([str(response), [[call.tool_name, call.tool_kwargs] for call in response.tool_calls]])


# --- ingestion and builds


def pipeline() -> Any:
    splitter = SentenceSplitter(chunk_size=60, chunk_overlap=0, id_func=lambda number, doc: f"{doc.id_}-{number}")
    extractors = [KeywordExtractor(llm=Clerk(), num_workers=1), SummaryExtractor(llm=Clerk(), num_workers=1)]
    return IngestionPipeline(transformations=[splitter, *extractors], disable_cache=True)


def documents(question: str) -> list[Document]:
    return [Document(text=node.text, id_=node.id_) for node in of_topic(question)[:2]]


def ingest(obj: Any, question: str) -> str:
    return told(obj.run(documents=documents(question), show_progress=False))


async def aingest(obj: Any, question: str) -> str:
    return told(await obj.arun(documents=documents(question), show_progress=False))


def built(**options: Any) -> Callable[[Any, str], str]:
    def build(cls: Any, question: str) -> str:
        made = cls.from_documents(
            documents(question), transformations=[SentenceSplitter(chunk_size=60, chunk_overlap=0)],
            **{name: kind() for name, kind in options.items()},
        )  # fmt: skip
        texts = sorted(node.get_content() for node in made.docstore.docs.values())
        return told([texts, sorted(_IDS.sub("id", repr(made.index_struct.to_dict())))])

    return build


KINDS: dict[str, Kind] = {
    "custom query engine": Kind(custom, query),
    "models made per query": Kind(lambda: Fresh(retriever=index().as_retriever(similarity_top_k=4)), query),
    "sub-questions": Kind(sub_questions, query, aquery),
    "router, one": Kind(lambda: router(False), query, aquery),
    "router, several": Kind(lambda: router(True), query),
    "hyde": Kind(hyde, query),
    "retry": Kind(retry, query),
    "reranked in batches": Kind(reranked, query),
    "chosen by a model": Kind(chosen_by_model, query),
    "recursive": Kind(recursive, query),
    "accumulate": Kind(lambda: synthesizer("accumulate"), synthesize, asynthesize),
    "tree_summarize": Kind(lambda: synthesizer("tree_summarize"), synthesize, asynthesize),
    "simple chat": Kind(lambda: chat_engine("simple"), chat, achat, early=False),
    "context chat": Kind(lambda: chat_engine("context"), chat, achat, early=False),
    "condense chat": Kind(lambda: chat_engine("condense_question"), chat, achat),
    "condense plus context chat": Kind(lambda: chat_engine("condense_plus_context"), chat, achat, early=False),
    "simple chat, streamed": Kind(lambda: chat_engine("simple"), stream_chat, astream_chat, early=False),
    "context chat, streamed": Kind(lambda: chat_engine("context"), stream_chat, astream_chat, early=False),
    "condense plus context chat, streamed": Kind(
        lambda: chat_engine("condense_plus_context"), stream_chat, astream_chat, early=False
    ),
    "evaluator": Kind(lambda: FaithfulnessEvaluator(llm=Clerk()), evaluate, aevaluate, early=False),
    "batch of evaluations": Kind(batch, abatch, abatch),
    "workflow": Kind(notes, run_notes, run_notes),
    "agent": Kind(agent, run_agent, run_agent, early=False),
    "extractors": Kind(pipeline, ingest, aingest),
    "document summary index": Kind(lambda: DocumentSummaryIndex, built(llm=Clerk, embed_model=Letters), early=False),
    "tree index": Kind(lambda: TreeIndex, built(llm=Clerk, num_children=lambda: 2), early=False),
    "keyword table index": Kind(lambda: KeywordTableIndex, built(llm=Clerk), early=False),
}
