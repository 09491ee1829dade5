"""The built-in table: classes of the common integrations of LangChain and LlamaIndex, and why they are in it.

Each was read for state: what a call leaves behind in the object, its class or module, and whether an answer depends on
it. Clients that are made at the first call and kept, or keys that are renewed, don't count. Not listed on purpose:

* composites (`MultiQueryRetriever`, `EnsembleRetriever`, `ChatHuggingFace`): the calls they make are components
  themselves,
* what remembers: LlamaIndex's `OpenAIResponses` (goes on from its last response) and `WeaviateVectorStore` (the
  collection's schema as it first saw it), `langchain_nvidia_ai_endpoints` (sends what it keeps as its last request, so
  threads may send each other's), the tools and retrievers for Wikipedia (language and answers are kept for the whole
  process) and PubMed (waits longer and longer),
* what writes to read: LlamaIndex's `PGVectorStore` makes its tables with the first query, `LanceDBVectorStore` an index
  with the first one for words,
* stores on a connection that the program may share (DuckDB, SQLite): a search ends what is being read from it, or may
  not come from another thread; of those that tell, `NEAR` says where they are,
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

from .facts import Entry, Near
from .kinds import (
    ACONTENT,
    ACREATE,
    AEMBED,
    AFIND,
    ALOCAL,
    AMESSAGES,
    AQDRANT,
    BOTO,
    CHAT,
    CHROMA,
    CLIENTS,
    COHERE,
    COMPLETION,
    COMPLETIONS,
    CONTENT,
    COUNTS,
    CREATE,
    EMBED,
    EMBEDDING,
    EMBEDDINGS,
    FIND,
    GENAI,
    LESS_ASYNC,
    LIKE,
    LLM,
    LOCAL,
    LOOKUP,
    MESSAGES,
    OLLAMA,
    ONE_ASYNC,
    OPENAI,
    PRIVATE,
    PUBLIC_RETRIEVER,
    QDRANT,
    QUERY,
    RENEWED,
    RERANKER,
    RESOURCES,
    RETRIEVE,
    RETRIEVER,
    ROOTS,
    SDK,
    SEARCHES,
    STATELESS_ID,
    THOUGHTS,
    TOOL,
    boto,
    elsewhere,
    held,
    http,
    in_memory,
    index,
    inside,
    model,
    search,
    store,
)

LISTED: dict[str, dict[str, Entry]] = {
    # --- SDKs, as programs call them
    "openai.resources.chat.completions": {
        "Completions": http(CREATE, SDK, twins=None),
        "AsyncCompletions": http(ACREATE, SDK, twins=None),
    },
    "openai.resources.embeddings": {
        "Embeddings": http(EMBED, SDK, twins=None),
        "AsyncEmbeddings": http(AEMBED, SDK, twins=None),
    },
    "anthropic.resources.messages": {
        "Messages": http(MESSAGES, SDK, twins=None),
        "AsyncMessages": http(AMESSAGES, SDK, twins=None),
    },
    "groq.resources.chat.completions": {
        "Completions": http(MESSAGES, SDK, twins=None),
        "AsyncCompletions": http(AMESSAGES, SDK, twins=None),
    },
    "ollama": {
        "Client": http(LOCAL, SDK, twins=None),
        "AsyncClient": http(ALOCAL, SDK, twins=None),
    },
    "google.genai.models": {
        "Models": http(CONTENT, "_api_client._http_options.base_url", twins=None),
        "AsyncModels": http(ACONTENT, "_api_client._http_options.base_url", twins=None),
    },
    "tavily": {
        "TavilyClient": search(FIND, "base_url", concurrency=1),
        "AsyncTavilyClient": search(AFIND, "_api_base_url"),
    },
    # --- LangChain: models
    "langchain_core": {
        "DeterministicFakeEmbedding": inside(EMBEDDINGS, 8, "function of the text"),
        "InMemoryVectorStore": replace(in_memory(SEARCHES), embeds="embedding"),
    },
    "langchain_openai": {
        "ChatOpenAI": replace(http(CHAT, *OPENAI, *ROOTS, checked=STATELESS_ID), limit="max_tokens"),
        "AzureChatOpenAI": http(CHAT, "azure_endpoint", *OPENAI, *ROOTS, checked=STATELESS_ID),
        "OpenAI": replace(
            http(COMPLETIONS, *OPENAI, *RESOURCES, twins=None, works_with=COUNTS, checked=LESS_ASYNC),
            limit="max_tokens",
        ),
        "AzureOpenAI": http(
            COMPLETIONS, "azure_endpoint", *OPENAI, *RESOURCES, twins=None, works_with=COUNTS, checked=LESS_ASYNC
        ),
        "OpenAIEmbeddings": http(EMBEDDINGS, *OPENAI, *RESOURCES),
        "AzureOpenAIEmbeddings": http(EMBEDDINGS, "azure_endpoint", *OPENAI, *RESOURCES),
    },
    "langchain_anthropic": {"ChatAnthropic": http(CHAT, "anthropic_api_url", "anthropic_proxy")},
    "langchain_google_genai": {
        "ChatGoogleGenerativeAI": http(CHAT, GENAI),
        "GoogleGenerativeAIEmbeddings": http(EMBEDDINGS, GENAI),
    },
    "langchain_google_vertexai": {
        "ChatVertexAI": http(CHAT, "api_endpoint", "client_options.api_endpoint"),
        "ChatAnthropicVertex": http(CHAT, *CLIENTS),
        "VertexAIEmbeddings": http(EMBEDDINGS, GENAI),
    },
    "langchain_mistralai": {
        "ChatMistralAI": http(CHAT, "endpoint", *CLIENTS),
        "MistralAIEmbeddings": http(EMBEDDINGS, "endpoint", *CLIENTS),
    },
    "langchain_groq": {"ChatGroq": http(CHAT, "groq_api_base", "groq_proxy", *RESOURCES)},
    "langchain_cohere": {
        "ChatCohere": http(CHAT, *COHERE, checked="the name of its default model, once asked for, is kept"),
        "CohereEmbeddings": http(EMBEDDINGS, *COHERE),
        "CohereRerank": http(RERANKER, *COHERE[:2]),
    },
    "langchain_aws": {
        "ChatBedrock": boto(CHAT, *BOTO),
        "ChatBedrockConverse": boto(CHAT, *BOTO),
        "BedrockEmbeddings": boto(EMBEDDINGS, *BOTO),
        "BedrockRerank": boto(RERANKER, *BOTO),
    },
    "langchain_fireworks": {
        "ChatFireworks": http(CHAT, "fireworks_api_base", *RESOURCES),
        "FireworksEmbeddings": http(EMBEDDINGS, "client.base_url"),
    },
    "langchain_together": {
        "ChatTogether": http(CHAT, "together_api_base", *OPENAI, *ROOTS),
        "TogetherEmbeddings": http(EMBEDDINGS, "together_api_base", *RESOURCES),
    },
    "langchain_ollama": {
        "ChatOllama": http(CHAT, *OLLAMA),
        "OllamaEmbeddings": http(EMBEDDINGS, *OLLAMA),
    },
    "langchain_huggingface": {
        "HuggingFaceEmbeddings": model(EMBEDDINGS),
        "HuggingFaceEndpoint": http(
            COMPLETION, "endpoint_url", "inference_server_url", "client.model", "async_client.model"
        ),
        "HuggingFaceEndpointEmbeddings": elsewhere(EMBEDDINGS, "a provider of Hugging Face's choice answers"),
    },
    "langchain_deepseek": {
        "ChatDeepSeek": http(CHAT, "api_base", "openai_api_base", *ROOTS, twins=None, checked=ONE_ASYNC)
    },
    "langchain_cerebras": {
        "ChatCerebras": http(CHAT, "cerebras_api_base", "cerebras_proxy", *OPENAI, *ROOTS, twins=None, checked=THOUGHTS)
    },
    "langchain_xai": {"ChatXAI": http(CHAT, "xai_api_base", *OPENAI, *ROOTS)},
    "langchain_litellm": {
        "ChatLiteLLM": elsewhere(CHAT, "models and fallbacks say where it goes"),
        "LiteLLMEmbeddings": elsewhere(EMBEDDINGS, "models and fallbacks say where it goes"),
    },
    # --- LangChain: stores
    "langchain_chroma": {
        "Chroma": held(
            store(SEARCHES, "_client._server._api_url", twins=True),
            ("_client._server", CHROMA),
            embeds="_embedding_function",
        )
    },
    "langchain_elasticsearch": {
        "ElasticsearchStore": store(SEARCHES, twins=True),
        "AsyncElasticsearchStore": store(SEARCHES),
    },
    "langchain_milvus": {"Milvus": store(SEARCHES)},
    "langchain_pinecone": {"PineconeVectorStore": store(SEARCHES)},
    "langchain_postgres": {
        "PGVector": store(SEARCHES, checked="missing tables are made with the object, or first used with `async_mode`"),
        "PGVectorStore": store(SEARCHES),
    },
    "langchain_qdrant": {
        "QdrantVectorStore": held(store(SEARCHES, "_client._client.rest_uri", twins=True), ("_client._client", QDRANT))
    },
    "langchain_redis": {"RedisVectorStore": store(SEARCHES, twins=True)},
    "langchain_weaviate": {"WeaviateVectorStore": store(SEARCHES)},
    # --- LangChain: reads of public services
    "langchain_tavily": {"TavilySearch": search(TOOL, "api_wrapper.api_base_url")},
    "langchain_exa": {
        "ExaSearchRetriever": search(PUBLIC_RETRIEVER, "client.base_url"),
        "ExaSearchResults": search(TOOL, "client.base_url"),
        "ExaFindSimilarResults": search(TOOL, "client.base_url"),
    },
    "langchain_community": {
        "OllamaEmbeddings": http(EMBEDDINGS, "base_url"),
        "HuggingFaceEmbeddings": model(EMBEDDINGS),
        "Chroma": held(
            store(SEARCHES, "_client._server._api_url", twins=True),
            ("_client._server", CHROMA),
            embeds="_embedding_function",
        ),
        "FAISS": held(
            index(SEARCHES),
            ("docstore", "langchain_community.docstore.in_memory.InMemoryDocstore"),
            embeds="embedding_function",
        ),
        "BM25Retriever": index(RETRIEVER),
        "TFIDFRetriever": index(RETRIEVER),
        "ArxivRetriever": search(PUBLIC_RETRIEVER, concurrency=1),
        "ArxivQueryRun": search(TOOL, concurrency=1),
        "DuckDuckGoSearchRun": search(TOOL, concurrency=1),
        "DuckDuckGoSearchResults": search(TOOL, concurrency=1),
        "BraveSearch": search(TOOL),
        "GoogleSerperRun": search(TOOL),
        "GoogleSerperResults": search(TOOL),
        "TavilySearchResults": search(TOOL),
        "TavilyAnswer": search(TOOL),
        "ListSQLDatabaseTool": replace(inside(TOOL, 8, "names that were read with the connection"), readonly=True),
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
    "llama_index.llms.openai": {"OpenAI": replace(http(LLM, "api_base", *PRIVATE), limit="max_tokens")},
    "llama_index.llms.openai_like": {"OpenAILike": replace(LIKE, passes_on=True)},
    "llama_index.llms.azure_openai": {"AzureOpenAI": http(LLM, "azure_endpoint", *PRIVATE, checked=RENEWED)},
    "llama_index.llms.anthropic": {"Anthropic": http(LLM, "base_url", *PRIVATE)},
    "llama_index.llms.bedrock_converse": {
        "BedrockConverse": boto(LLM, "endpoint_url", "_client._endpoint.host", "_boto_client_kwargs.endpoint_url")
    },
    "llama_index.llms.cerebras": {"Cerebras": LIKE},
    "llama_index.llms.cohere": {
        "Cohere": http(LLM, "base_url", "_client._client_wrapper._base_url", "_aclient._client_wrapper._base_url")
    },
    "llama_index.llms.databricks": {"Databricks": LIKE},
    "llama_index.llms.deepseek": {"DeepSeek": LIKE},
    "llama_index.llms.fireworks": {"Fireworks": http(LLM, "api_base", *PRIVATE)},
    "llama_index.llms.google_genai": {"GoogleGenAI": http(LLM, f"_{GENAI}")},
    "llama_index.llms.groq": {"Groq": LIKE},
    "llama_index.llms.huggingface_api": {
        "HuggingFaceInferenceAPI": http(LLM, "model", "_sync_client.model", "_async_client.model")
    },
    "llama_index.llms.litellm": {"LiteLLM": elsewhere(LLM, "models and fallbacks say where it goes")},
    "llama_index.llms.lmstudio": {"LMStudio": http(LLM, "base_url")},
    "llama_index.llms.mistralai": {"MistralAI": http(LLM, "_client.sdk_configuration.server_url")},
    "llama_index.llms.nebius": {"NebiusLLM": LIKE},
    "llama_index.llms.nvidia": {"NVIDIA": LIKE},
    "llama_index.llms.ollama": {
        "Ollama": http(LLM, *OLLAMA, checked="the length of its model's context, once asked for, is kept")
    },
    "llama_index.llms.openllm": {"OpenLLM": LIKE},
    "llama_index.llms.openrouter": {"OpenRouter": LIKE},
    "llama_index.llms.together": {"TogetherLLM": LIKE},
    "llama_index.embeddings.openai": {"OpenAIEmbedding": http(EMBEDDING, "api_base", *PRIVATE)},
    "llama_index.embeddings.openai_like": {"OpenAILikeEmbedding": http(EMBEDDING, "api_base", *PRIVATE)},
    "llama_index.embeddings.azure_openai": {
        "AzureOpenAIEmbedding": http(EMBEDDING, "azure_endpoint", *PRIVATE, checked=RENEWED)
    },
    "llama_index.embeddings.bedrock": {"BedrockEmbedding": boto(EMBEDDING, "_client._endpoint.host")},
    "llama_index.embeddings.cohere": {
        "CohereEmbedding": http(
            EMBEDDING, "base_url", "_client._client_wrapper._base_url", "_async_client._client_wrapper._base_url"
        )
    },
    "llama_index.embeddings.fireworks": {"FireworksEmbedding": http(EMBEDDING, "api_base", *PRIVATE)},
    "llama_index.embeddings.google_genai": {"GoogleGenAIEmbedding": http(EMBEDDING, f"_{GENAI}")},
    "llama_index.embeddings.huggingface": {"HuggingFaceEmbedding": model(EMBEDDING)},
    "llama_index.embeddings.huggingface_api": {
        "HuggingFaceInferenceAPIEmbedding": http(EMBEDDING, "model_name", "_sync_client.model", "_async_client.model")
    },
    "llama_index.embeddings.litellm": {
        "LiteLLMEmbedding": elsewhere(EMBEDDING, "models and fallbacks say where it goes")
    },
    "llama_index.embeddings.mistralai": {"MistralAIEmbedding": http(EMBEDDING, "_client.sdk_configuration.server_url")},
    "llama_index.embeddings.nvidia": {"NVIDIAEmbedding": http(EMBEDDING, "base_url", *PRIVATE)},
    "llama_index.embeddings.ollama": {"OllamaEmbedding": http(EMBEDDING, *OLLAMA)},
    "llama_index.embeddings.together": {"TogetherEmbedding": http(EMBEDDING, "api_base")},
    # --- LlamaIndex: stores and retrievers
    "llama_index.core": {"SimpleVectorStore": in_memory(QUERY)},
    "llama_index.core.storage.docstore": {
        "SimpleDocumentStore": held(
            replace(in_memory(LOOKUP), twins=True, works_with=("_kvstore",)),
            ("_kvstore", "llama_index.core.storage.kvstore.simple_kvstore.SimpleKVStore"),
        )
    },
    "llama_index.retrievers.bm25": {"BM25Retriever": index(RETRIEVE)},
    "llama_index.vector_stores.chroma": {
        "ChromaVectorStore": held(
            store(QUERY, "_collection._client._api_url", twins=True), ("_collection._client", CHROMA)
        )
    },
    "llama_index.vector_stores.faiss": {"FaissVectorStore": index(QUERY)},
    "llama_index.vector_stores.milvus": {
        "MilvusVectorStore": store(QUERY, checked="a hybrid search fills in the ranker's default weights")
    },
    "llama_index.vector_stores.pinecone": {"PineconeVectorStore": store(QUERY, twins=True)},
    "llama_index.vector_stores.qdrant": {
        "QdrantVectorStore": held(
            store(QUERY, "_client._client.rest_uri", "_aclient._client.rest_uri"),
            ("_client._client", QDRANT),
            ("_aclient._client", AQDRANT),
        )
    },
    "llama_index.vector_stores.redis": {"RedisVectorStore": store(QUERY)},
}
"""By package and name of the class."""

LANCE = Near(
    {"_connection": "lancedb.db.LanceDBConnection", "_table": "lancedb.table.LanceTable", "_reranker": ""},
    place="_connection.uri",
)
NEAR: dict[str, dict[str, Near]] = {
    "langchain_community": {
        "LanceDB": LANCE,
        "SQLiteVec": Near({"_connection": "sqlite3.Connection"}),
    },
    "llama_index.vector_stores.lancedb": {"LanceDBVectorStore": LANCE},
}
"""Stores that nobody vouches for and that may be in this process: declared by a user, they are local without his saying
so. DuckDB's connections don't tell whether they lead to MotherDuck."""
