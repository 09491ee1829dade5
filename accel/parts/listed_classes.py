"""The built-in table: classes of the common integrations of LangChain and LlamaIndex, and why they are in it.

Each was read for state: what a call leaves behind in the object, its class or module, and whether an answer depends on
it. Clients that are made at the first call and kept, or keys that are renewed, don't count. Not listed on purpose:

* composites (`MultiQueryRetriever`, `EnsembleRetriever`, `ChatHuggingFace`): the calls they make are components
  themselves,
* what remembers: LlamaIndex's `OpenAIResponses` (goes on from its last response) and `WeaviateVectorStore` (the
  collection's schema as it first saw it), `langchain_nvidia_ai_endpoints` (sends what it keeps as its last request, so
  threads may send each other's), the tools and retrievers for Wikipedia (language and answers are kept for the whole
  process) and PubMed (waits longer and longer),
* what writes to read: LlamaIndex's `PGVectorStore` makes its tables with the first query,
* what blocks or needs the event loop it was made in: LlamaIndex's `VllmServer` (`OpenAILike` reaches the same servers)
  and `ElasticsearchStore`,
* what draws random numbers, tools that may write (`QuerySQLDatabaseTool`), and those whose answer is the present moment
  (weather, prices, models that search the web),
* LlamaIndex's rerankers: they change the nodes they are given, or hand back the same ones.

Nobody has established for any of these that merged chunks equal the whole message, so none says `streams_equal`: usage
and metadata differ. No store and no index is `readonly`: the program or others may write to it.
"""

from __future__ import annotations

from dataclasses import replace

from .facts import Entry

Kind = tuple[str, tuple[str, ...]]

# --- kinds: what it is, and its method families
_CHAT: Kind = ("chat model", ("chat",))
_COMPLETION: Kind = ("language model", ("completion",))
_COMPLETIONS: Kind = ("language model", ("completions",))
_EMBEDDINGS: Kind = ("embeddings", ("embed_query", "embed_documents"))
_SEARCHES: Kind = (
    "vector store",
    ("similarity_search", "similarity_search_with_score", "max_marginal_relevance_search"),
)
_RETRIEVER: Kind = ("retriever", ("retriever",))
_PUBLIC_RETRIEVER: Kind = ("retriever", ("public_retriever",))
_RERANKER: Kind = ("reranker", ("reranker",))
_TOOL: Kind = ("tool", ("tool",))
_LLM: Kind = ("language model", ("llama_chat", "llama_completion"))
_EMBEDDING: Kind = ("embeddings", ("query_embedding", "text_embedding", "text_embeddings"))
_QUERY: Kind = ("vector store", ("store_query",))
_LOOKUP: Kind = ("document store", ("documents",))
_RETRIEVE: Kind = ("retriever", ("retrieve",))
_CREATE: Kind = ("SDK client", ("sdk create", "sdk parse"))
_ACREATE: Kind = ("SDK client", ("sdk create (async)", "sdk parse (async)"))
_EMBED: Kind = ("SDK client", ("sdk embedding",))
_AEMBED: Kind = ("SDK client", ("sdk embedding (async)",))
_MESSAGES: Kind = ("SDK client", ("sdk create",))
_AMESSAGES: Kind = ("SDK client", ("sdk create (async)",))
_LOCAL: Kind = ("SDK client", ("sdk chat", "sdk generate", "sdk embed"))
_ALOCAL: Kind = ("SDK client", ("sdk chat (async)", "sdk generate (async)", "sdk embed (async)"))
_CONTENT: Kind = ("SDK client", ("sdk generate_content",))
_ACONTENT: Kind = ("SDK client", ("sdk generate_content (async)",))
_FIND: Kind = ("tool", ("sdk search",))
_AFIND: Kind = ("tool", ("sdk search (async)",))

# --- where clients keep their addresses
_RESOURCES = ("client._client.base_url", "async_client._client.base_url")
"""Of OpenAI's client and its likes, where the integration keeps a part of it."""
_ROOTS = (*_RESOURCES, "root_client.base_url", "root_async_client.base_url")
_CLIENTS = ("client.base_url", "async_client.base_url")
_PRIVATE = ("_client.base_url", "_aclient.base_url")
_OPENAI = ("openai_api_base", "openai_proxy")
_OLLAMA = ("base_url", "_client._client.base_url", "_async_client._client.base_url")
_COHERE = ("base_url", "client._client_wrapper._base_url", "async_client._client_wrapper._base_url")
_BOTO = ("endpoint_url", "client._endpoint.host")
_GENAI = "client._api_client._http_options.base_url"
_SDK = "_client.base_url"
"""Where the parts of a client have it from."""
_GIVEN = ("_client", "_client._client.event_hooks")
_HOOKS = ("_client.event_hooks",)
"""What a program may have given to a client of an SDK that runs with each call."""


def _http(
    kind: Kind, *addresses: str, twins: bool | None = True, checked: str = "", works_with: tuple[str, ...] = ()
) -> Entry:
    reason = "listed: stateless HTTP client that threads may share" + (f"; {checked}" if checked else "")
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses, pure=True, concurrency=64, twins=twins, reason=reason,
        works_with=works_with,
    )  # fmt: skip


def _elsewhere(kind: Kind, why: str) -> Entry:
    """A client whose fields don't tell where it sends to."""
    entry = _http(kind)
    return replace(entry, addresses=None, reason=f"{entry.reason}; {why}")


def _boto(kind: Kind, *addresses: str) -> Entry:
    reason = "listed: stateless; boto3's clients may be shared by threads"
    return replace(_http(kind, *addresses), concurrency=8, reason=reason)


def _inside(kind: Kind, concurrency: int, reason: str) -> Entry:
    """In this process, and nowhere else."""
    return Entry(
        kind=kind[0], families=kind[1], addresses=(), pure=True, concurrency=concurrency, local=True, twins=True,
        reason=f"listed: {reason}",
    )  # fmt: skip


def _model(kind: Kind) -> Entry:
    return _inside(kind, 1, "model in this process, not made for threads")


def _index(kind: Kind) -> Entry:
    """Not `readonly`: the program may change it, or how many passages it gives. Its searches are fast anyway."""
    return _inside(kind, 1, "index in this process; a search changes nothing in it")


def _dict(kind: Kind) -> Entry:
    return _inside(kind, 8, "a dict in this process")


def _store(kind: Kind, *addresses: str, twins: bool | None = None, checked: str = "") -> Entry:
    """twins: where the coroutine runs the other method; other stores have a second client, which may go elsewhere."""
    reason = (
        "listed: a search changes nothing; how many calls its client takes depends on how it was made, and others may "
        "write to it" + (f"; {checked}" if checked else "")
    )
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses or None, pure=True, twins=twins, reason=reason
    )  # fmt: skip


def _search(kind: Kind, *addresses: str, concurrency: int = 8) -> Entry:
    limit = "a connection of its own for every call" if concurrency > 1 else "and that wants one call at a time"
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses, pure=True, concurrency=concurrency, readonly=True,
        twins=True, reason=f"listed: search of a public service to which the program can't write; {limit}",
    )  # fmt: skip


_STATELESS_ID = "an earlier response it goes on from is named in the messages, not kept"
_ONE_ASYNC = "only its sync methods turn unreadable answers into a message that says so"
_LESS_ASYNC = "only its sync methods raise what a server says went wrong"
_THOUGHTS = "only its sync methods put thoughts into the content"
_COUNTS = ("custom_get_token_ids",)
_LIKE = replace(_http(_LLM, "api_base", *_PRIVATE, works_with=("tokenizer",)), limit="max_tokens")
_RENEWED = "the key that it keeps is renewed"

LISTED: dict[str, dict[str, Entry]] = {
    # --- SDKs, as programs call them
    "openai.resources.chat.completions": {
        "Completions": _http(_CREATE, _SDK, twins=None, works_with=_GIVEN),
        "AsyncCompletions": _http(_ACREATE, _SDK, twins=None, works_with=_GIVEN),
    },
    "openai.resources.embeddings": {
        "Embeddings": _http(_EMBED, _SDK, twins=None, works_with=_GIVEN),
        "AsyncEmbeddings": _http(_AEMBED, _SDK, twins=None, works_with=_GIVEN),
    },
    "anthropic.resources.messages": {
        "Messages": _http(_MESSAGES, _SDK, twins=None, works_with=_GIVEN),
        "AsyncMessages": _http(_AMESSAGES, _SDK, twins=None, works_with=_GIVEN),
    },
    "groq.resources.chat.completions": {
        "Completions": _http(_MESSAGES, _SDK, twins=None, works_with=_GIVEN),
        "AsyncCompletions": _http(_AMESSAGES, _SDK, twins=None, works_with=_GIVEN),
    },
    "ollama": {
        "Client": _http(_LOCAL, _SDK, twins=None, works_with=_HOOKS),
        "AsyncClient": _http(_ALOCAL, _SDK, twins=None, works_with=_HOOKS),
    },
    "google.genai.models": {
        "Models": _http(_CONTENT, "_api_client._http_options.base_url", twins=None),
        "AsyncModels": _http(_ACONTENT, "_api_client._http_options.base_url", twins=None),
    },
    "tavily": {
        "TavilyClient": _search(_FIND, "base_url", concurrency=1),
        "AsyncTavilyClient": _search(_AFIND, "_api_base_url"),
    },
    # --- LangChain: models
    "langchain_core": {
        "DeterministicFakeEmbedding": _inside(_EMBEDDINGS, 8, "function of the text"),
        "InMemoryVectorStore": _dict(_SEARCHES),
    },
    "langchain_openai": {
        "ChatOpenAI": replace(_http(_CHAT, *_OPENAI, *_ROOTS, checked=_STATELESS_ID), limit="max_tokens"),
        "AzureChatOpenAI": _http(_CHAT, "azure_endpoint", *_OPENAI, *_ROOTS, checked=_STATELESS_ID),
        "OpenAI": replace(
            _http(_COMPLETIONS, *_OPENAI, *_RESOURCES, twins=None, works_with=_COUNTS, checked=_LESS_ASYNC),
            limit="max_tokens",
        ),
        "AzureOpenAI": _http(
            _COMPLETIONS, "azure_endpoint", *_OPENAI, *_RESOURCES, twins=None, works_with=_COUNTS, checked=_LESS_ASYNC
        ),
        "OpenAIEmbeddings": _http(_EMBEDDINGS, *_OPENAI, *_RESOURCES),
        "AzureOpenAIEmbeddings": _http(_EMBEDDINGS, "azure_endpoint", *_OPENAI, *_RESOURCES),
    },
    "langchain_anthropic": {"ChatAnthropic": _http(_CHAT, "anthropic_api_url", "anthropic_proxy")},
    "langchain_google_genai": {
        "ChatGoogleGenerativeAI": _http(_CHAT, _GENAI),
        "GoogleGenerativeAIEmbeddings": _http(_EMBEDDINGS, _GENAI),
    },
    "langchain_google_vertexai": {
        "ChatVertexAI": _http(_CHAT, "api_endpoint", "client_options.api_endpoint"),
        "ChatAnthropicVertex": _http(_CHAT, *_CLIENTS),
        "VertexAIEmbeddings": _http(_EMBEDDINGS, _GENAI),
    },
    "langchain_mistralai": {
        "ChatMistralAI": _http(_CHAT, "endpoint", *_CLIENTS),
        "MistralAIEmbeddings": _http(_EMBEDDINGS, "endpoint", *_CLIENTS),
    },
    "langchain_groq": {"ChatGroq": _http(_CHAT, "groq_api_base", "groq_proxy", *_RESOURCES)},
    "langchain_cohere": {
        "ChatCohere": _http(_CHAT, *_COHERE, checked="the name of its default model, once asked for, is kept"),
        "CohereEmbeddings": _http(_EMBEDDINGS, *_COHERE),
        "CohereRerank": _http(_RERANKER, *_COHERE[:2]),
    },
    "langchain_aws": {
        "ChatBedrock": _boto(_CHAT, *_BOTO),
        "ChatBedrockConverse": _boto(_CHAT, *_BOTO),
        "BedrockEmbeddings": _boto(_EMBEDDINGS, *_BOTO),
        "BedrockRerank": _boto(_RERANKER, *_BOTO),
    },
    "langchain_fireworks": {
        "ChatFireworks": _http(_CHAT, "fireworks_api_base", *_RESOURCES),
        "FireworksEmbeddings": _http(_EMBEDDINGS, "client.base_url"),
    },
    "langchain_together": {
        "ChatTogether": _http(_CHAT, "together_api_base", *_OPENAI, *_ROOTS),
        "TogetherEmbeddings": _http(_EMBEDDINGS, "together_api_base", *_RESOURCES),
    },
    "langchain_ollama": {
        "ChatOllama": _http(_CHAT, *_OLLAMA),
        "OllamaEmbeddings": _http(_EMBEDDINGS, *_OLLAMA),
    },
    "langchain_huggingface": {
        "HuggingFaceEmbeddings": _model(_EMBEDDINGS),
        "HuggingFaceEndpoint": _http(
            _COMPLETION, "endpoint_url", "inference_server_url", "client.model", "async_client.model"
        ),
        "HuggingFaceEndpointEmbeddings": _elsewhere(_EMBEDDINGS, "a provider of Hugging Face's choice answers"),
    },
    "langchain_deepseek": {
        "ChatDeepSeek": _http(_CHAT, "api_base", "openai_api_base", *_ROOTS, twins=None, checked=_ONE_ASYNC)
    },
    "langchain_cerebras": {
        "ChatCerebras": _http(
            _CHAT, "cerebras_api_base", "cerebras_proxy", *_OPENAI, *_ROOTS, twins=None, checked=_THOUGHTS
        )
    },
    "langchain_xai": {"ChatXAI": _http(_CHAT, "xai_api_base", *_OPENAI, *_ROOTS)},
    "langchain_litellm": {
        "ChatLiteLLM": _elsewhere(_CHAT, "models and fallbacks say where it goes"),
        "LiteLLMEmbeddings": _elsewhere(_EMBEDDINGS, "models and fallbacks say where it goes"),
    },
    # --- LangChain: stores
    "langchain_chroma": {"Chroma": _store(_SEARCHES, twins=True)},
    "langchain_elasticsearch": {
        "ElasticsearchStore": _store(_SEARCHES, twins=True),
        "AsyncElasticsearchStore": _store(_SEARCHES),
    },
    "langchain_milvus": {"Milvus": _store(_SEARCHES)},
    "langchain_pinecone": {"PineconeVectorStore": _store(_SEARCHES)},
    "langchain_postgres": {
        "PGVector": _store(
            _SEARCHES, checked="missing tables are made with the object, or first used with `async_mode`"
        ),
        "PGVectorStore": _store(_SEARCHES),
    },
    "langchain_qdrant": {"QdrantVectorStore": _store(_SEARCHES, "_client._client.rest_uri", twins=True)},
    "langchain_redis": {"RedisVectorStore": _store(_SEARCHES, twins=True)},
    "langchain_weaviate": {"WeaviateVectorStore": _store(_SEARCHES)},
    # --- LangChain: reads of public services
    "langchain_tavily": {"TavilySearch": _search(_TOOL, "api_wrapper.api_base_url")},
    "langchain_exa": {
        "ExaSearchRetriever": _search(_PUBLIC_RETRIEVER, "client.base_url"),
        "ExaSearchResults": _search(_TOOL, "client.base_url"),
        "ExaFindSimilarResults": _search(_TOOL, "client.base_url"),
    },
    "langchain_community": {
        "OllamaEmbeddings": _http(_EMBEDDINGS, "base_url"),
        "HuggingFaceEmbeddings": _model(_EMBEDDINGS),
        "Chroma": _store(_SEARCHES, twins=True),
        "FAISS": _index(_SEARCHES),
        "BM25Retriever": _index(_RETRIEVER),
        "TFIDFRetriever": _index(_RETRIEVER),
        "ArxivRetriever": _search(_PUBLIC_RETRIEVER, concurrency=1),
        "ArxivQueryRun": _search(_TOOL, concurrency=1),
        "DuckDuckGoSearchRun": _search(_TOOL, concurrency=1),
        "DuckDuckGoSearchResults": _search(_TOOL, concurrency=1),
        "BraveSearch": _search(_TOOL),
        "GoogleSerperRun": _search(_TOOL),
        "GoogleSerperResults": _search(_TOOL),
        "TavilySearchResults": _search(_TOOL),
        "TavilyAnswer": _search(_TOOL),
        "ListSQLDatabaseTool": replace(_inside(_TOOL, 8, "names that were read with the connection"), readonly=True),
        "InfoSQLDatabaseTool": Entry(
            kind="tool",
            families=("tool",),
            addresses=None,
            pure=True,
            concurrency=1,
            twins=True,
            reason="listed: only reads; others may write to the database meanwhile",
        ),
    },
    # --- LlamaIndex: models
    "llama_index.llms.openai": {"OpenAI": replace(_http(_LLM, "api_base", *_PRIVATE), limit="max_tokens")},
    "llama_index.llms.openai_like": {"OpenAILike": replace(_LIKE, passes_on=True)},
    "llama_index.llms.azure_openai": {"AzureOpenAI": _http(_LLM, "azure_endpoint", *_PRIVATE, checked=_RENEWED)},
    "llama_index.llms.anthropic": {"Anthropic": _http(_LLM, "base_url", *_PRIVATE)},
    "llama_index.llms.bedrock_converse": {
        "BedrockConverse": _boto(_LLM, "endpoint_url", "_client._endpoint.host", "_boto_client_kwargs.endpoint_url")
    },
    "llama_index.llms.cerebras": {"Cerebras": _LIKE},
    "llama_index.llms.cohere": {
        "Cohere": _http(_LLM, "base_url", "_client._client_wrapper._base_url", "_aclient._client_wrapper._base_url")
    },
    "llama_index.llms.databricks": {"Databricks": _LIKE},
    "llama_index.llms.deepseek": {"DeepSeek": _LIKE},
    "llama_index.llms.fireworks": {"Fireworks": _http(_LLM, "api_base", *_PRIVATE)},
    "llama_index.llms.google_genai": {"GoogleGenAI": _http(_LLM, f"_{_GENAI}")},
    "llama_index.llms.groq": {"Groq": _LIKE},
    "llama_index.llms.huggingface_api": {
        "HuggingFaceInferenceAPI": _http(_LLM, "model", "_sync_client.model", "_async_client.model")
    },
    "llama_index.llms.litellm": {"LiteLLM": _elsewhere(_LLM, "models and fallbacks say where it goes")},
    "llama_index.llms.lmstudio": {"LMStudio": _http(_LLM, "base_url")},
    "llama_index.llms.mistralai": {"MistralAI": _http(_LLM, "_client.sdk_configuration.server_url")},
    "llama_index.llms.nebius": {"NebiusLLM": _LIKE},
    "llama_index.llms.nvidia": {"NVIDIA": _LIKE},
    "llama_index.llms.ollama": {
        "Ollama": _http(_LLM, *_OLLAMA, checked="the length of its model's context, once asked for, is kept")
    },
    "llama_index.llms.openllm": {"OpenLLM": _LIKE},
    "llama_index.llms.openrouter": {"OpenRouter": _LIKE},
    "llama_index.llms.together": {"TogetherLLM": _LIKE},
    "llama_index.embeddings.openai": {"OpenAIEmbedding": _http(_EMBEDDING, "api_base", *_PRIVATE)},
    "llama_index.embeddings.openai_like": {"OpenAILikeEmbedding": _http(_EMBEDDING, "api_base", *_PRIVATE)},
    "llama_index.embeddings.azure_openai": {
        "AzureOpenAIEmbedding": _http(_EMBEDDING, "azure_endpoint", *_PRIVATE, checked=_RENEWED)
    },
    "llama_index.embeddings.bedrock": {"BedrockEmbedding": _boto(_EMBEDDING, "_client._endpoint.host")},
    "llama_index.embeddings.cohere": {
        "CohereEmbedding": _http(
            _EMBEDDING, "base_url", "_client._client_wrapper._base_url", "_async_client._client_wrapper._base_url"
        )
    },
    "llama_index.embeddings.fireworks": {"FireworksEmbedding": _http(_EMBEDDING, "api_base", *_PRIVATE)},
    "llama_index.embeddings.google_genai": {"GoogleGenAIEmbedding": _http(_EMBEDDING, f"_{_GENAI}")},
    "llama_index.embeddings.huggingface": {"HuggingFaceEmbedding": _model(_EMBEDDING)},
    "llama_index.embeddings.huggingface_api": {
        "HuggingFaceInferenceAPIEmbedding": _http(_EMBEDDING, "model_name", "_sync_client.model", "_async_client.model")
    },
    "llama_index.embeddings.litellm": {
        "LiteLLMEmbedding": _elsewhere(_EMBEDDING, "models and fallbacks say where it goes")
    },
    "llama_index.embeddings.mistralai": {
        "MistralAIEmbedding": _http(_EMBEDDING, "_client.sdk_configuration.server_url")
    },
    "llama_index.embeddings.nvidia": {"NVIDIAEmbedding": _http(_EMBEDDING, "base_url", *_PRIVATE)},
    "llama_index.embeddings.ollama": {"OllamaEmbedding": _http(_EMBEDDING, *_OLLAMA)},
    "llama_index.embeddings.together": {"TogetherEmbedding": _http(_EMBEDDING, "api_base")},
    # --- LlamaIndex: stores and retrievers
    "llama_index.core": {"SimpleVectorStore": _dict(_QUERY)},
    "llama_index.core.storage.docstore": {
        "SimpleDocumentStore": replace(_dict(_LOOKUP), twins=True, works_with=("_kvstore",))
    },
    "llama_index.retrievers.bm25": {"BM25Retriever": _index(_RETRIEVE)},
    "llama_index.vector_stores.chroma": {"ChromaVectorStore": _store(_QUERY, twins=True)},
    "llama_index.vector_stores.faiss": {"FaissVectorStore": _index(_QUERY)},
    "llama_index.vector_stores.milvus": {
        "MilvusVectorStore": _store(_QUERY, checked="a hybrid search fills in the ranker's default weights")
    },
    "llama_index.vector_stores.pinecone": {"PineconeVectorStore": _store(_QUERY, twins=True)},
    "llama_index.vector_stores.qdrant": {
        "QdrantVectorStore": _store(_QUERY, "_client._client.rest_uri", "_aclient._client.rest_uri")
    },
    "llama_index.vector_stores.redis": {"RedisVectorStore": _store(_QUERY)},
}
"""By package and name of the class."""
