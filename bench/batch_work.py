"""The least that engines must do for some calls: what no order and no placement of them can do without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, LLMResult

from accel.engine.profile import Profile
from accel.reports.costs import Costs
from accel_sim.kv_cache import KVCache
from accel_sim.tokens import PieceTokenizer


class Work(BaseCallbackHandler):
    """The calls of chat models that a program makes, as LangChain reports them."""

    def __init__(self) -> None:
        self._asked: dict[UUID, list[BaseMessage]] = {}
        self._tokens = PieceTokenizer()
        self._calls: defaultdict[str, dict[tuple[int, ...], int]] = defaultdict(dict)
        """By model, the prompts and how many tokens answer them."""
        self.calls = 0

    @property
    def equal_calls(self) -> int:
        """Calls that ask a model what another one asks it, too: they are greedy, so that it answers the same."""
        return self.calls - sum(map(len, self._calls.values()))

    @property
    def longest(self) -> int:
        """Tokens of the longest call, with its answer."""
        return max((len(ids) + tokens for calls in self._calls.values() for ids, tokens in calls.items()), default=0)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **kwargs: Any
    ) -> None:
        self._asked[run_id] = messages[0]

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        generation = response.generations[0][0]
        assert isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage)
        message = generation.message
        turns: Any = convert_to_openai_messages(self._asked.pop(run_id))
        self.calls += 1
        prompts = self._calls[message.response_metadata["model_name"]]
        prompts[tuple(self._tokens.encode(turns))] = (message.usage_metadata or {"output_tokens": 0})["output_tokens"]

    def least_s(self, profile: Profile, replicas: int) -> float:
        """Seconds of the busiest model's replicas, each block of a prompt computed once, each equal call made once, and
        every token decoded in the best batch; nobody ever waits for anything."""
        return max((self._seconds(prompts, Costs(profile)) for prompts in self._calls.values()), default=0.0) / replicas

    @staticmethod
    def _seconds(prompts: Mapping[tuple[int, ...], int], costs: Costs) -> float:
        cache, seen, seconds = KVCache(0, costs.block_tokens), set[int](), 0.0
        for ids, answer_tokens in prompts.items():
            blocks = cache.blocks(ids)
            known = next((n for n, block in enumerate(blocks) if block not in seen), len(blocks))
            seen.update(blocks)
            # The prompt's last step gives the first token.
            seconds += costs.prompt_s(known * costs.block_tokens, len(ids)) + (answer_tokens - 1) * costs.token_s()
        return seconds
