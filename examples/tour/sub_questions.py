"""A query engine that splits a question, as LlamaIndex's examples have it: each part is answered from its own index."""

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.tools import QueryEngineTool
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.llms.openai import OpenAI

REPORTS = {
    "harbour": ["The harbour moved 410 tons of cargo.", "Two boats were lost in the spring tides."],
    "lighthouse": ["The copper lantern was renewed.", "Fog was seen from the summit on 61 days."],
    "meadow": ["The meadow was flooded twice.", "Forty willows were planted along the bank."],
}

Settings.llm = OpenAI(model="gpt-4o-mini", temperature=0)
Settings.embed_model = OpenAIEmbedding(model="text-embedding-3-small")


def query_engine() -> BaseQueryEngine:
    tools = []
    for name, texts in REPORTS.items():
        index = VectorStoreIndex.from_documents([Document(text=text) for text in texts])
        engine = index.as_query_engine(similarity_top_k=2)
        tools.append(QueryEngineTool.from_defaults(engine, name=name, description=f"the year's report on the {name}"))
    return SubQuestionQueryEngine.from_defaults(
        query_engine_tools=tools,
        question_gen=LLMQuestionGenerator.from_defaults(),
        use_async=False,
        verbose=False,
    )
