"""What every engine must do: one suite for all of them, ours and anyone's.

Each check is a coroutine that takes a started engine, runs on that engine's loop and raises AssertionError:

    @pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
    def test_my_engine(check, engine): run_on_my_loop(check(engine))
"""

from typing import Any

from .embedding import EMBEDDING_CHECKS as EMBEDDING_CHECKS
from .embedding import EmbeddingCheck as EmbeddingCheck
from .embedding import embeds_by_meaning as embeds_by_meaning
from .llm import LLM_CHECKS as LLM_CHECKS
from .llm import QUESTION as QUESTION
from .llm import LLMCheck as LLMCheck
from .llm import answer as answer
from .llm import constraints_hold as constraints_hold
from .rerank import RERANK_CHECKS as RERANK_CHECKS
from .rerank import RerankCheck as RerankCheck
from .rerank import ranks_by_relevance as ranks_by_relevance
from .samples import FOX as FOX
from .store import EAST as EAST
from .store import RECORDS as RECORDS
from .store import VECTOR_STORE_CHECKS as VECTOR_STORE_CHECKS
from .store import VectorStoreCheck as VectorStoreCheck


def name(check: Any) -> str:
    """A check's name, for test ids."""
    return str(check.__name__)
