"""The table of listed classes against the packages themselves, where they are installed; no call leaves this machine.

`make listed-check` runs this with nearly all of them.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.vector_stores import SimpleVectorStore
from wrapt import FunctionWrapper

from accel.parts.components import facts_of
from accel.parts.listed.table import LISTED, addresses_of, calls_the_programs, listed, passes_on
from accel.parts.methods import patches, sdks
from accel_langgraph.components import FAMILIES as LANGCHAIN
from accel_langgraph.components import PUBLIC_RETRIEVER, install_all
from accel_llamaindex.components import FAMILIES as LLAMAINDEX
from accel_llamaindex.components import LANGUAGE_MODEL, leaf_place

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages about themselves

ENTRIES = [(package, name) for package, classes in LISTED.items() for name in classes]
METHODS = [method for _, methods in (*LANGCHAIN, *LLAMAINDEX) for method in methods]
METHODS += [*PUBLIC_RETRIEVER, *sdks.METHODS.values()]
FRAMEWORKS = ("langchain_core.", "llama_index.core.", "pydantic.", "builtins", "abc")
PLACES = (
    "",
    ".embeddings",
    ".vectorstores",
    ".retrievers",
    ".tools",
    ".model_garden",
    ".vector_stores",
)
"""Where packages publish their classes."""
HERE, THERE = "http://127.0.0.1:9/v1", "https://models.example.com/v1"
KEY = {"api_key": "k"}
AWS = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
AZURE = {"api_version": "2024-10-21", **KEY}
MADE: dict[str, tuple[str, dict[str, Any]]] = {
    "langchain_openai.ChatOpenAI": ("base_url", {"model": "m", **KEY}),
    "langchain_openai.AzureChatOpenAI": ("azure_endpoint", {"azure_deployment": "d", **AZURE}),
    "langchain_openai.OpenAI": ("base_url", {"model": "m", **KEY}),
    "langchain_openai.AzureOpenAI": ("azure_endpoint", {"azure_deployment": "d", **AZURE}),
    "langchain_openai.OpenAIEmbeddings": ("base_url", KEY),
    "langchain_openai.AzureOpenAIEmbeddings": ("azure_endpoint", {"azure_deployment": "d", **AZURE}),
    "langchain_anthropic.ChatAnthropic": ("base_url", {"model": "m", **KEY}),
    "langchain_google_genai.ChatGoogleGenerativeAI": ("base_url", {"model": "m", **KEY}),
    "langchain_google_genai.GoogleGenerativeAIEmbeddings": ("base_url", {"model": "m", "google_api_key": "k"}),
    "langchain_google_vertexai.ChatVertexAI": ("api_endpoint", {"model": "gemini-2.5-flash", "project": "p"}),
    "langchain_google_vertexai.ChatAnthropicVertex": (
        "api_endpoint",
        {"model": "claude", "project": "p", "location": "us-east5"},
    ),
    "langchain_google_vertexai.VertexAIEmbeddings": ("", {"model": "text-embedding-005", "project": "p"}),
    "langchain_mistralai.ChatMistralAI": ("endpoint", {"model": "m", **KEY}),
    "langchain_mistralai.MistralAIEmbeddings": ("endpoint", {"model": "m", **KEY}),
    "langchain_groq.ChatGroq": ("base_url", {"model": "m", **KEY}),
    "langchain_cohere.ChatCohere": ("base_url", {"model": "m", "cohere_api_key": "k"}),
    "langchain_cohere.CohereEmbeddings": ("base_url", {"model": "m", "cohere_api_key": "k"}),
    "langchain_cohere.CohereRerank": ("base_url", {"model": "m", "cohere_api_key": "k"}),
    "langchain_aws.ChatBedrock": ("endpoint_url", {"model": "anthropic.claude-3", **AWS}),
    "langchain_aws.ChatBedrockConverse": ("endpoint_url", {"model": "anthropic.claude-3", **AWS}),
    "langchain_aws.BedrockEmbeddings": ("endpoint_url", {"model_id": "m", **AWS}),
    "langchain_fireworks.ChatFireworks": ("base_url", {"model": "m", **KEY}),
    "langchain_fireworks.FireworksEmbeddings": ("", {"model": "m", **KEY}),
    "langchain_together.ChatTogether": ("base_url", {"model": "m", **KEY}),
    "langchain_together.TogetherEmbeddings": ("base_url", {"model": "m", **KEY}),
    "langchain_ollama.ChatOllama": ("base_url", {"model": "m"}),
    "langchain_ollama.OllamaEmbeddings": ("base_url", {"model": "m"}),
    "langchain_huggingface.HuggingFaceEndpoint": ("endpoint_url", {"huggingfacehub_api_token": "k"}),
    "langchain_deepseek.ChatDeepSeek": ("base_url", {"model": "m", **KEY}),
    "langchain_cerebras.ChatCerebras": ("base_url", {"model": "m", **KEY}),
    "langchain_xai.ChatXAI": ("base_url", {"model": "m", **KEY}),
    "langchain_tavily.TavilySearch": ("api_base_url", {"tavily_api_key": "k"}),
    "langchain_exa.ExaSearchRetriever": ("exa_base_url", {"exa_api_key": "k"}),
    "langchain_exa.ExaSearchResults": ("exa_base_url", {"exa_api_key": "k"}),
    "langchain_exa.ExaFindSimilarResults": ("exa_base_url", {"exa_api_key": "k"}),
    "langchain_community.OllamaEmbeddings": ("base_url", {"model": "m"}),
    "llama_index.llms.openai.OpenAI": ("api_base", {"model": "gpt-4o", **KEY}),
    "llama_index.llms.openai_like.OpenAILike": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.azure_openai.AzureOpenAI": ("azure_endpoint", {"engine": "d", "model": "gpt-4o", **AZURE}),
    "llama_index.llms.anthropic.Anthropic": ("base_url", KEY),
    "llama_index.llms.bedrock_converse.BedrockConverse": (
        "endpoint_url",
        {"model": "anthropic.claude-3-haiku-20240307-v1:0", **AWS},
    ),
    "llama_index.llms.cerebras.Cerebras": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.cohere.Cohere": ("base_url", KEY),
    "llama_index.llms.databricks.Databricks": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.deepseek.DeepSeek": ("api_base", {"model": "deepseek-chat", **KEY}),
    "llama_index.llms.fireworks.Fireworks": ("api_base", KEY),
    "llama_index.llms.groq.Groq": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.huggingface_api.HuggingFaceInferenceAPI": ("model", {"token": "t"}),
    "llama_index.llms.lmstudio.LMStudio": ("base_url", {"model_name": "m"}),
    "llama_index.llms.mistralai.MistralAI": ("endpoint", KEY),
    "llama_index.llms.nebius.NebiusLLM": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.ollama.Ollama": ("base_url", {"model": "m"}),
    "llama_index.llms.openllm.OpenLLM": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.openrouter.OpenRouter": ("api_base", {"model": "m", **KEY}),
    "llama_index.llms.together.TogetherLLM": ("api_base", {"model": "m", **KEY}),
    "llama_index.embeddings.openai.OpenAIEmbedding": ("api_base", KEY),
    "llama_index.embeddings.openai_like.OpenAILikeEmbedding": ("api_base", {"model_name": "m", **KEY}),
    "llama_index.embeddings.azure_openai.AzureOpenAIEmbedding": ("azure_endpoint", {"deployment_name": "d", **AZURE}),
    "llama_index.embeddings.bedrock.BedrockEmbedding": ("", AWS),
    "llama_index.embeddings.cohere.CohereEmbedding": ("base_url", KEY),
    "llama_index.embeddings.fireworks.FireworksEmbedding": ("api_base", KEY),
    "llama_index.embeddings.google_genai.GoogleGenAIEmbedding": ("", KEY),
    "llama_index.embeddings.huggingface_api.HuggingFaceInferenceAPIEmbedding": ("model_name", {"token": "t"}),
    "llama_index.embeddings.mistralai.MistralAIEmbedding": ("", KEY),
    "llama_index.embeddings.nvidia.NVIDIAEmbedding": ("base_url", {"model": "NV-Embed-QA", **KEY}),
    "llama_index.embeddings.ollama.OllamaEmbedding": ("base_url", {"model_name": "m"}),
    "llama_index.embeddings.together.TogetherEmbedding": ("api_base", {"model_name": "m", **KEY}),
}
"""By class: the argument that is its address, if it has one, and the others that it needs. Classes that connect while
they are made are not made here."""


@pytest.fixture(autouse=True, scope="module")
def closed() -> Iterator[None]:
    """Clients that were never closed say so when they are collected."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, and nobody's settings."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise OSError(f"a test wanted to connect to {args[:2]}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OLLAMA_HOST", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def real(package: str, name: str) -> type[Any]:
    """The class, from its package; skips if that is absent."""
    try:
        absent = importlib.util.find_spec(package) is None
    except ModuleNotFoundError:  # a package around it
        absent = True
    if absent:
        pytest.skip("its package is not installed (see `make listed-check`)")
    for place in PLACES:
        if place and importlib.util.find_spec(package + place) is None:
            continue
        found = getattr(importlib.import_module(package + place), name, None)
        if found is not None:
            assert isinstance(found, type)
            return found
    raise AssertionError(f"{package} has no class {name}")


def made(key: str, address: str) -> Any:
    package, name = key.rsplit(".", 1)
    cls = real(package, name)
    argument, given = MADE[key]
    given = dict(given)
    if package == "langchain_google_vertexai":
        given["credentials"] = importlib.import_module("google.auth.credentials").AnonymousCredentials()
    if name == "MistralAIEmbeddings":  # else it asks a hub for one
        models = importlib.import_module("tokenizers.models")
        given["tokenizer"] = importlib.import_module("tokenizers").Tokenizer(models.BPE())
    return cls(**given, **({argument: address} if argument else {}))


@pytest.mark.parametrize(("package", "name"), ENTRIES)
def test_the_class_is_what_the_table_says(package: str, name: str) -> None:
    cls, entry = real(package, name), LISTED[package][name]
    assert listed(cls) == entry
    own = [base for base in cls.__mro__ if not base.__module__.startswith(FRAMEWORKS) or base is cls]
    own += [BaseDocumentStore] * issubclass(cls, BaseDocumentStore)  # whose look-ups all document stores have
    for family in entry.families:
        leaves = {method.name for method in METHODS if method.family == family}
        assert leaves, f"no adapter knows {family}"
        assert any(leaf in vars(base) for leaf in leaves for base in own), f"{name} has none of {sorted(leaves)}"
    fields = {*getattr(cls, "model_fields", ()), *(getattr(cls, "__private_attributes__", None) or ())}
    starts = {path.split(".")[0] for path in entry.addresses or ()}
    assert not fields or not {start for start in starts if start not in fields and not hasattr(cls, start)}


@pytest.mark.parametrize(
    ("package", "name"), [(package, name) for package, name in ENTRIES if package.startswith("llama_index.llms.")]
)
def test_the_leaves_of_a_language_model_tell_nobody_of_themselves(package: str, name: str) -> None:
    """LlamaIndex's decorators do. Where a class hands its calls on to its base's, the leaf is there."""
    bases = [base for base in real(package, name).__mro__ if not base.__module__.startswith("llama_index.core.")]
    for leaf in {method.name for method in LANGUAGE_MODEL}:
        told = [_is_decorated(vars(base)[leaf]) for base in bases if leaf in vars(base) and not passes_on(base)]
        assert told in ([], [True], [False]) or all(told), f"{name}.{leaf} may call one that tells of itself"


def _is_decorated(function: Any) -> bool:
    while isinstance(function, FunctionWrapper):  # of spans, which all its classes get
        function = function.__wrapped__
    return leaf_place(function) is not None


@pytest.mark.parametrize("key", [key for key, (argument, _) in MADE.items() if argument])
def test_an_instance_tells_where_its_data_goes(key: str) -> None:
    here, there = addresses_of(made(key, HERE)), addresses_of(made(key, THERE))
    assert here and all("127.0.0.1:9" in address for address in here)
    assert there and all("models.example.com" in address for address in there)


@pytest.mark.parametrize("key", [key for key, (argument, _) in MADE.items() if not argument])
def test_an_instance_without_an_address_of_its_own_goes_to_its_service(key: str) -> None:
    found = addresses_of(made(key, ""))
    assert found is not None
    assert not any("127.0.0.1" in address or "localhost" in address for address in found)


@pytest.mark.parametrize("key", ["langchain_openai.ChatOpenAI", "langchain_openai.OpenAIEmbeddings"])
@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_an_address_from_the_environment_is_seen(key: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, name = key.rsplit(".", 1)
    cls = real(package, name)
    usual = addresses_of(cls(api_key="k"))
    assert usual and all("api.openai.com" in address for address in usual)
    monkeypatch.setenv(variable, HERE)
    found = addresses_of(cls(api_key="k"))
    assert found and all("127.0.0.1:9" in address for address in found)
    monkeypatch.setenv(variable, THERE)
    found = addresses_of(cls(api_key="k"))
    assert found and all("models.example.com" in address for address in found)


@pytest.mark.parametrize("key", ["langchain_openai.ChatOpenAI", "langchain_openai.OpenAIEmbeddings"])
def test_a_client_that_the_program_brought_goes_nobody_knows_where(key: str) -> None:
    package, name = key.rsplit(".", 1)
    cls = real(package, name)
    assert addresses_of(cls(api_key="k", base_url=HERE, client=object(), async_client=object())) is None


def test_ollama_is_found_where_its_client_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = real("langchain_ollama", "ChatOllama")
    found = addresses_of(cls(model="m"))
    assert found and all("127.0.0.1" in address for address in found)
    monkeypatch.setenv("OLLAMA_HOST", THERE)
    found = addresses_of(cls(model="m"))
    assert found and all("models.example.com" in address for address in found)


def test_qdrant_in_this_process_is_told_from_a_server() -> None:
    qdrant = real("langchain_qdrant", "QdrantVectorStore")
    clients = importlib.import_module("qdrant_client")
    for url in (HERE, THERE):
        client = clients.QdrantClient(url=url, check_compatibility=False)
        store = qdrant(client, "c", object(), validate_embeddings=False, validate_collection_config=False)
        assert [address.startswith(url.removesuffix("/v1")) for address in addresses_of(store) or ()] == [True]
    store = qdrant(
        clients.QdrantClient(":memory:"), "c", None, validate_embeddings=False, validate_collection_config=False
    )
    assert addresses_of(store) is None


def test_a_tokenizer_that_the_program_made_is_code_of_its_own() -> None:
    class Tokenizer:
        def encode(self, text: str) -> list[str]:
            return text.split()

    given = {"model": "m", "api_base": HERE, **KEY}
    cls = real("llama_index.llms.openai_like", "OpenAILike")
    assert not calls_the_programs(cls(**given))
    assert not calls_the_programs(cls(**given, tokenizer="a name"))
    assert calls_the_programs(cls(**given, tokenizer=Tokenizer()))


# --- stores in this process, and those of servers -------------------------------------------------------------------


class Vectors(Embeddings):
    def embed_query(self, text: str) -> list[float]:
        return [1.0, float(len(text))]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def chroma_server(url: str) -> Any:
    server = object.__new__(importlib.import_module("chromadb.api.fastapi").FastAPI)  # made, it would connect
    server._api_url = url
    return server


def test_a_chroma_in_this_process_is_told_from_a_server(tmp_path: Path) -> None:
    chroma = real("langchain_chroma", "Chroma")
    clients = importlib.import_module("chromadb")
    settings = clients.Settings(anonymized_telemetry=False)
    patches.enable()
    install_all()
    for client in (clients.EphemeralClient(settings), clients.PersistentClient(str(tmp_path), settings)):
        store = chroma("texts", embedding_function=Vectors(), client=client)
        assert facts_of(store).local and facts_of(store).pure and not facts_of(store).readonly
        assert not facts_of(chroma("own", client=client)).pure, "nobody knows where its collection embeds queries"
        for url in (HERE, THERE):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store._client, "_server", chroma_server(url))
                assert facts_of(store).local is (url is HERE)
        other = real("llama_index.vector_stores.chroma", "ChromaVectorStore")
        collection = client.get_or_create_collection("nodes")
        assert facts_of(other(chroma_collection=collection)).local
        collection._client = chroma_server(THERE)
        assert not facts_of(other(chroma_collection=collection)).local


def test_a_qdrant_in_this_process_is_local() -> None:
    of_langchain = real("langchain_qdrant", "QdrantVectorStore")
    clients = importlib.import_module("qdrant_client")
    of_llamaindex = real("llama_index.vector_stores.qdrant", "QdrantVectorStore")
    inside, there = clients.QdrantClient(":memory:"), clients.QdrantClient(url=THERE, check_compatibility=False)
    for client, local in ((inside, True), (there, False)):
        store = of_langchain(client, "c", Vectors(), validate_embeddings=False, validate_collection_config=False)
        assert facts_of(store).local is local
    assert facts_of(of_llamaindex("c", client=inside)).local
    mixed = of_llamaindex("c", client=inside)
    mixed._aclient = clients.AsyncQdrantClient(url=THERE, check_compatibility=False)
    assert not facts_of(mixed).local
    assert facts_of(of_llamaindex("c", aclient=clients.AsyncQdrantClient(":memory:"))).local


def test_an_index_is_local_where_its_texts_are() -> None:
    cls = real("langchain_community", "FAISS")
    memory = importlib.import_module("langchain_community.docstore.in_memory").InMemoryDocstore
    patches.enable()
    install_all()
    store = cls(Vectors(), object(), memory(), {})
    assert facts_of(store).local and facts_of(store).pure
    store.docstore = importlib.import_module("langchain_community.docstore.wikipedia").Wikipedia.__new__(
        importlib.import_module("langchain_community.docstore.wikipedia").Wikipedia
    )
    assert not facts_of(store).local
    assert not facts_of(cls(len, object(), memory(), {})).pure, "a function of the program's"


class Elsewhere(SimpleKVStore):
    """As one that asks a server."""


Elsewhere.__module__ = "llama_index.storage.kvstore.redis.base"


def test_documents_are_local_where_what_keeps_them_is() -> None:
    assert facts_of(SimpleDocumentStore()).local and facts_of(SimpleDocumentStore()).pure
    elsewhere = facts_of(SimpleDocumentStore(Elsewhere()))
    assert (elsewhere.local, elsewhere.pure) == (False, True)
    assert facts_of(SimpleVectorStore()).local


def test_a_store_of_langchain_in_memory_embeds_with_a_component() -> None:
    class Quack:
        def embed_query(self, text: str) -> list[float]:
            return [1.0]

    patches.enable()
    install_all()
    assert facts_of(InMemoryVectorStore(Vectors())).pure and facts_of(InMemoryVectorStore(Vectors())).local
    assert not facts_of(InMemoryVectorStore(Quack())).pure  # type: ignore[arg-type]


SUBCLASSES = [
    "langchain_openai.ChatOpenAI",
    "langchain_ollama.ChatOllama",
    "langchain_tavily.TavilySearch",
    "langchain_exa.ExaSearchRetriever",
    "langchain_community.FAISS",
    "langchain_community.BM25Retriever",
    "llama_index.embeddings.openai.OpenAIEmbedding",
    "llama_index.llms.ollama.Ollama",
]


@pytest.mark.parametrize("key", SUBCLASSES)
def test_what_frameworks_write_into_a_subclass_changes_nothing(key: str) -> None:
    package, name = key.rsplit(".", 1)
    cls = real(package, name)

    class Sub(cls):  # type: ignore[misc]
        """A name, and a method of its own."""

        def hello(self) -> str:
            return "hello"

    class Other(cls):  # type: ignore[misc]
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **given)

    assert listed(Sub) == LISTED[package][name]
    assert listed(Other) is None


def test_a_default_model_changes_nothing_and_a_default_address_what_hangs_on_it() -> None:
    cls = real("langchain_openai", "ChatOpenAI")

    class Small(cls):  # type: ignore[misc]
        model_name: str = "small"

    class Near(cls):  # type: ignore[misc]
        openai_api_base: str | None = HERE

    assert listed(Small) == LISTED["langchain_openai"]["ChatOpenAI"]
    entry = listed(Near)
    assert entry is not None and (entry.pure, entry.local, entry.readonly) == (True, None, None)
    assert all("127.0.0.1:9" in address for address in addresses_of(Near(api_key="k")) or [""])
