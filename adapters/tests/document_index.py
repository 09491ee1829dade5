"""Of LlamaIndex, what the pages for users speak of without making it."""

from __future__ import annotations

from llama_index.core import Document, Settings, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import BaseNode, TextNode

Settings.llm = MockLLM()  # without it a query engine asks a remote model
embed_model = MockEmbedding(embed_dim=8)
index = VectorStoreIndex.from_documents([Document(text="Tides follow the moon.")] * 3, embed_model=embed_model)
nodes: list[BaseNode] = [TextNode(text=text) for text in ("Glaciers move stones.", "Reefs are made by corals.")]
