"""How the entries of the built-in table are made (`classes`): kinds, addresses, what is known of each kind."""

from __future__ import annotations

from dataclasses import replace

from .facts import Entry

Kind = tuple[str, tuple[str, ...]]

# --- kinds: what it is, and its method families
CHAT: Kind = ("chat model", ("chat",))
COMPLETION: Kind = ("language model", ("completion",))
COMPLETIONS: Kind = ("language model", ("completions",))
EMBEDDINGS: Kind = ("embeddings", ("embed_query", "embed_documents"))
SEARCHES: Kind = (
    "vector store",
    ("similarity_search", "similarity_search_with_score", "max_marginal_relevance_search"),
)
RETRIEVER: Kind = ("retriever", ("retriever",))
PUBLIC_RETRIEVER: Kind = ("retriever", ("public_retriever",))
RERANKER: Kind = ("reranker", ("reranker",))
TOOL: Kind = ("tool", ("tool",))
LLM: Kind = ("language model", ("llama_chat", "llama_completion"))
EMBEDDING: Kind = ("embeddings", ("query_embedding", "text_embedding", "text_embeddings"))
QUERY: Kind = ("vector store", ("store_query",))
LOOKUP: Kind = ("document store", ("documents",))
RETRIEVE: Kind = ("retriever", ("retrieve",))
CREATE: Kind = ("SDK client", ("sdk create", "sdk parse"))
ACREATE: Kind = ("SDK client", ("sdk create (async)", "sdk parse (async)"))
EMBED: Kind = ("SDK client", ("sdk embedding",))
AEMBED: Kind = ("SDK client", ("sdk embedding (async)",))
MESSAGES: Kind = ("SDK client", ("sdk create",))
AMESSAGES: Kind = ("SDK client", ("sdk create (async)",))
LOCAL: Kind = ("SDK client", ("sdk chat", "sdk generate", "sdk embed"))
ALOCAL: Kind = ("SDK client", ("sdk chat (async)", "sdk generate (async)", "sdk embed (async)"))
CONTENT: Kind = ("SDK client", ("sdk generate_content",))
ACONTENT: Kind = ("SDK client", ("sdk generate_content (async)",))
FIND: Kind = ("tool", ("sdk search",))
AFIND: Kind = ("tool", ("sdk search (async)",))

# --- where clients keep their addresses
RESOURCES = ("client._client.base_url", "async_client._client.base_url")
"""Of OpenAI's client and its likes, where the integration keeps a part of it."""
ROOTS = (*RESOURCES, "root_client.base_url", "root_async_client.base_url")
CLIENTS = ("client.base_url", "async_client.base_url")
PRIVATE = ("_client.base_url", "_aclient.base_url")
OPENAI = ("openai_api_base", "openai_proxy")
OLLAMA = ("base_url", "_client._client.base_url", "_async_client._client.base_url")
COHERE = ("base_url", "client._client_wrapper._base_url", "async_client._client_wrapper._base_url")
BOTO = ("endpoint_url", "client._endpoint.host")
GENAI = "client._api_client._http_options.base_url"
SDK = "_client.base_url"
"""Where the parts of a client have it from."""


def http(
    kind: Kind, *addresses: str, twins: bool | None = True, checked: str = "", works_with: tuple[str, ...] = ()
) -> Entry:
    reason = "listed: stateless HTTP client that threads may share" + (f"; {checked}" if checked else "")
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses, pure=True, concurrency=64, twins=twins, reason=reason,
        works_with=works_with,
    )  # fmt: skip


def elsewhere(kind: Kind, why: str) -> Entry:
    """A client whose fields don't tell where it sends to."""
    entry = http(kind)
    return replace(entry, addresses=None, reason=f"{entry.reason}; {why}")


def boto(kind: Kind, *addresses: str) -> Entry:
    reason = "listed: stateless; boto3's clients may be shared by threads"
    return replace(http(kind, *addresses), concurrency=8, reason=reason)


def inside(kind: Kind, concurrency: int, reason: str) -> Entry:
    """In this process, and nowhere else."""
    return Entry(
        kind=kind[0], families=kind[1], addresses=(), pure=True, concurrency=concurrency, local=True, twins=True,
        reason=f"listed: {reason}",
    )  # fmt: skip


def model(kind: Kind) -> Entry:
    return inside(kind, 1, "model in this process, not made for threads")


def index(kind: Kind) -> Entry:
    """Not `readonly`: the program may change it, or how many passages it gives. Its searches are fast anyway."""
    return inside(kind, 1, "index in this process; a search changes nothing in it")


def in_memory(kind: Kind) -> Entry:
    return inside(kind, 8, "a dict in this process")


def store(kind: Kind, *addresses: str, twins: bool | None = None, checked: str = "") -> Entry:
    """twins: where the coroutine runs the other method; other stores have a second client, which may go elsewhere."""
    reason = (
        "listed: a search changes nothing; how many calls its client takes depends on how it was made, and others may "
        "write to it" + (f"; {checked}" if checked else "")
    )
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses or None, pure=True, twins=twins, reason=reason
    )  # fmt: skip


def search(kind: Kind, *addresses: str, concurrency: int = 8) -> Entry:
    limit = "a connection of its own for every call" if concurrency > 1 else "and that wants one call at a time"
    return Entry(
        kind=kind[0], families=kind[1], addresses=addresses, pure=True, concurrency=concurrency, readonly=True,
        twins=True, reason=f"listed: search of a public service to which the program can't write; {limit}",
    )  # fmt: skip


def held(entry: Entry, *inside: tuple[str, str], addresses: tuple[str, ...] | None = None, embeds: str = "") -> Entry:
    """A store that is in this process where what holds it is of a certain class, and a server's else."""
    classes = tuple((path, tuple(names.split())) for path, names in inside)
    return replace(entry, local=None, addresses=addresses or entry.addresses, inside=classes, embeds=embeds)


CHROMA = "chromadb.api.rust.RustBindingsAPI chromadb.api.segment.SegmentAPI"
QDRANT = "qdrant_client.local.qdrant_local.QdrantLocal"
AQDRANT = "qdrant_client.local.async_qdrant_local.AsyncQdrantLocal"
STATELESS_ID = "an earlier response it goes on from is named in the messages, not kept"
ONE_ASYNC = "only its sync methods turn unreadable answers into a message that says so"
LESS_ASYNC = "only its sync methods raise what a server says went wrong"
THOUGHTS = "only its sync methods put thoughts into the content"
COUNTS = ("custom_get_token_ids",)
LIKE = replace(http(LLM, "api_base", *PRIVATE, works_with=("tokenizer",)), limit="max_tokens")
RENEWED = "the key that it keeps is renewed"
