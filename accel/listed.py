"""Facts about components, and the built-in table of the common integrations of LangChain and LlamaIndex.

A class is listed by its name and the package it must come from; a subclass is not, nor is a class of that name from
elsewhere. Who isn't listed is judged by what users declare and by its code (`accel.components`). Not listed on purpose:

* composites (`MultiQueryRetriever`, `EnsembleRetriever`): the calls they make are components themselves,
* what remembers (`OpenAIResponses` may go on from its last response) or draws random numbers,
* tools that may write (`QuerySQLDatabaseTool`), and those whose answer is the present moment (weather, prices),
* LlamaIndex's rerankers: they change the nodes they are given, or hand back the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Facts:
    """What Accel may do with a component. `None` means that nobody said."""

    pure: bool | None = None
    """Answers don't depend on earlier calls and a call changes nothing (a sample counts as an answer)."""
    concurrency: int | None = None
    """How many threads or tasks may be inside one instance."""
    local: bool | None = None
    """Input stays on this machine or network."""
    readonly: bool | None = None
    """A read: nobody changes what it reads during a run, so an early read may stand for the program's own."""
    owned: bool | None = None
    """All writes to it pass through Accel's own classes."""
    elementwise: bool | None = None
    """A batch gives what its elements give alone."""
    streams_equal: bool | None = None
    """Merged chunks equal the unstreamed message."""
    twins: bool | None = None
    """Sync and async methods of one family give the same: one may answer for the other."""
    reason: str = ""

    def over(self, other: Facts) -> Facts:
        """These facts, completed by `other`."""
        gaps = {name: getattr(other, name) for name in self.__slots__ if getattr(self, name) is None}
        reason = other.reason if self.pure is None and other.pure is not None else self.reason or other.reason
        return replace(self, **gaps, reason=reason)


_HTTP = Facts(pure=True, concurrency=64, twins=True, reason="listed: stateless HTTP client that threads may share")
_BOTO = Facts(
    pure=True, concurrency=8, twins=True, reason="listed: stateless; boto3's clients may be shared by threads"
)
_IN_PROCESS = Facts(
    pure=True, concurrency=1, local=True, twins=True, reason="listed: model in this process, not made for threads"
)
_DICT = Facts(pure=True, concurrency=8, local=True, twins=True, reason="listed: a dict in this process")
_INDEX = Facts(
    pure=True,
    concurrency=1,
    local=True,
    twins=True,
    reason="listed: index in this process; a search changes nothing in it",
)
_STORE = Facts(
    pure=True,
    twins=True,
    reason="listed: a search changes nothing; where its client goes and how many calls it takes depends on how it was "
    "made, and others may write to it",
)
_PUBLIC = "listed: search of a public service to which the program can't write"
_SEARCH = Facts(
    pure=True, concurrency=8, readonly=True, twins=True, reason=f"{_PUBLIC}; a connection of its own for every call"
)
_ONE_BY_ONE = Facts(
    pure=True, concurrency=1, readonly=True, twins=True, reason=f"{_PUBLIC}, and that wants one call at a time"
)

LISTED: dict[str, dict[str, Facts]] = {
    # --- LangChain
    "langchain_core": {
        "DeterministicFakeEmbedding": Facts(
            pure=True, concurrency=8, local=True, twins=True, reason="listed: function of the text"
        ),
        "InMemoryVectorStore": _DICT,
    },
    "langchain_openai": dict.fromkeys(
        ("ChatOpenAI", "AzureChatOpenAI", "OpenAIEmbeddings", "AzureOpenAIEmbeddings"), _HTTP
    ),
    "langchain_anthropic": {"ChatAnthropic": _HTTP},
    "langchain_google_genai": {"ChatGoogleGenerativeAI": _HTTP, "GoogleGenerativeAIEmbeddings": _HTTP},
    "langchain_cohere": {"ChatCohere": _HTTP, "CohereEmbeddings": _HTTP, "CohereRerank": _HTTP},
    "langchain_mistralai": {"ChatMistralAI": _HTTP, "MistralAIEmbeddings": _HTTP},
    "langchain_groq": {"ChatGroq": _HTTP},
    "langchain_ollama": {"ChatOllama": _HTTP, "OllamaEmbeddings": _HTTP},
    "langchain_together": {"ChatTogether": _HTTP, "TogetherEmbeddings": _HTTP},
    "langchain_fireworks": {"ChatFireworks": _HTTP, "FireworksEmbeddings": _HTTP},
    "langchain_deepseek": {"ChatDeepSeek": _HTTP},
    "langchain_xai": {"ChatXAI": _HTTP},
    "langchain_aws": {"ChatBedrock": _BOTO, "ChatBedrockConverse": _BOTO, "BedrockEmbeddings": _BOTO},
    "langchain_huggingface": {"HuggingFaceEmbeddings": _IN_PROCESS, "HuggingFaceEndpointEmbeddings": _HTTP},
    "langchain_chroma": {"Chroma": _STORE},
    "langchain_pinecone": {"PineconeVectorStore": _STORE},
    "langchain_postgres": {"PGVector": _STORE},
    "langchain_qdrant": {"QdrantVectorStore": _STORE},
    "langchain_tavily": {"TavilySearch": _SEARCH},
    "langchain_community": {
        "OllamaEmbeddings": _HTTP,
        "HuggingFaceEmbeddings": _IN_PROCESS,
        "Chroma": _STORE,
        "FAISS": _INDEX,
        "BM25Retriever": _INDEX,
        "TFIDFRetriever": _INDEX,
        "WikipediaRetriever": _ONE_BY_ONE,
        "WikipediaQueryRun": _ONE_BY_ONE,
        "ArxivRetriever": _ONE_BY_ONE,
        "ArxivQueryRun": _ONE_BY_ONE,
        "PubMedRetriever": _ONE_BY_ONE,
        "PubmedQueryRun": _ONE_BY_ONE,
        "DuckDuckGoSearchRun": _ONE_BY_ONE,
        "DuckDuckGoSearchResults": _ONE_BY_ONE,
        "BraveSearch": _SEARCH,
        "GoogleSerperRun": _SEARCH,
        "GoogleSerperResults": _SEARCH,
        "TavilySearchResults": _SEARCH,
        "TavilyAnswer": _SEARCH,
        "ListSQLDatabaseTool": Facts(
            pure=True,
            concurrency=8,
            local=True,
            readonly=True,
            reason="listed: names that were read with the connection",
        ),
        "InfoSQLDatabaseTool": Facts(
            pure=True, concurrency=1, reason="listed: only reads; others may write to the database meanwhile"
        ),
    },
    # --- LlamaIndex
    "llama_index.core": {"SimpleVectorStore": _DICT},
    "llama_index.llms.openai": {"OpenAI": _HTTP},
    "llama_index.llms.openai_like": {"OpenAILike": _HTTP},
    "llama_index.llms.azure_openai": {"AzureOpenAI": _HTTP},
    "llama_index.llms.anthropic": {"Anthropic": _HTTP},
    "llama_index.llms.bedrock_converse": {"BedrockConverse": _BOTO},
    "llama_index.llms.cohere": {"Cohere": _HTTP},
    "llama_index.llms.deepseek": {"DeepSeek": _HTTP},
    "llama_index.llms.google_genai": {"GoogleGenAI": _HTTP},
    "llama_index.llms.groq": {"Groq": _HTTP},
    "llama_index.llms.mistralai": {"MistralAI": _HTTP},
    "llama_index.llms.ollama": {"Ollama": _HTTP},
    "llama_index.embeddings.openai": {"OpenAIEmbedding": _HTTP},
    "llama_index.embeddings.azure_openai": {"AzureOpenAIEmbedding": _HTTP},
    "llama_index.embeddings.cohere": {"CohereEmbedding": _HTTP},
    "llama_index.embeddings.google_genai": {"GoogleGenAIEmbedding": _HTTP},
    "llama_index.embeddings.huggingface": {"HuggingFaceEmbedding": _IN_PROCESS},
    "llama_index.embeddings.mistralai": {"MistralAIEmbedding": _HTTP},
    "llama_index.embeddings.ollama": {"OllamaEmbedding": _HTTP},
    "llama_index.retrievers.bm25": {"BM25Retriever": _INDEX},
    "llama_index.vector_stores.chroma": {"ChromaVectorStore": _STORE},
    "llama_index.vector_stores.faiss": {"FaissVectorStore": _INDEX},
    "llama_index.vector_stores.pinecone": {"PineconeVectorStore": _STORE},
}
"""By package and name of the class. An index in this process is not `readonly`: the program may change it, or how many
passages it gives; its searches are too fast to be missed."""


def listed(cls: type) -> Facts | None:
    """What the table says of exactly this class."""
    parts = cls.__module__.split(".")
    for length in range(len(parts), 0, -1):
        found = LISTED.get(".".join(parts[:length]), {}).get(cls.__name__)
        if found is not None:
            return found
    return None
