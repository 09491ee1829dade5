"""The limit of a batch: the least time that engines need for some calls, whatever their order and their placement."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, LLMResult

from accel.engine.profile import Profile
from accel.process.clock import now_s
from accel.reports.limits.costs import Costs
from accel_sim.kv_cache import KVCache
from accel_sim.tokens import PieceTokenizer

HALVINGS = 60


@dataclass(eq=False, slots=True)
class _Asked:
    """One call of a model."""

    run: UUID
    messages: list[BaseMessage]
    began_s: float
    ended_s: float = 0.0
    model: str = ""
    prompt: tuple[int, ...] = ()
    answer_tokens: int = 0


class Work(BaseCallbackHandler):
    """The calls of chat models that a program makes, as LangChain reports them."""

    def __init__(self) -> None:
        self._parents: dict[UUID, UUID] = {}
        self._asked: dict[UUID, _Asked] = {}
        self._tokens = PieceTokenizer()

    @property
    def calls(self) -> int:
        return len(self._asked)

    @property
    def equal_calls(self) -> int:
        """Calls that ask a model what another one asks it, too: they are greedy, so that it answers the same."""
        return self.calls - len({(call.model, call.prompt) for call in self._asked.values()})

    def on_chain_start(
        self, serialized: dict[str, Any], inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        if parent_run_id is not None:
            self._parents[run_id] = parent_run_id

    @property
    def longest(self) -> int:
        """Tokens of the longest call, with its answer."""
        return max((len(call.prompt) + call.answer_tokens for call in self._asked.values()), default=0)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        root = parent_run_id or run_id
        while root in self._parents:
            root = self._parents[root]
        self._asked[run_id] = _Asked(root, messages[0], now_s())

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        generation = response.generations[0][0]
        assert isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage)
        message, call = generation.message, self._asked[run_id]
        turns: Any = convert_to_openai_messages(call.messages)
        call.ended_s, call.model = now_s(), message.response_metadata["model_name"]
        call.prompt = tuple(self._tokens.encode(turns))
        call.answer_tokens = (message.usage_metadata or {"output_tokens": 0})["output_tokens"]

    def least_s(self, profile: Profile, replicas: int, kv_tokens: int = 0) -> float:
        """What no order and no placement goes below: every block of a prompt is computed once, every equal call made
        once, and engines decode at once as many as

        - they have slots for, and room in their KV caches, of which a shared block takes a part for each that shares
          it (kv_tokens: of each replica, 0 for any number);
        - the runs ask for: each as many as it ever does, as one call follows the other in the program's order.

        Nor does it end before its longest run would alone."""
        costs = Costs(profile)
        models = [_Model(costs, replicas, kv_tokens, calls) for calls in self._by_model().values()]
        runs = self._by_run()
        at_once = sum(map(_most_at_once, runs))
        alone_s = max((_path_s(calls, costs) for calls in runs), default=0.0)
        low, high = 0.0, replicas * sum(model.least_s(1.0) for model in models)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            needed = [model.request_s(middle) for model in models]
            if any(one is None for one in needed) or sum(one or 0.0 for one in needed) > at_once * middle:
                low = middle
            else:
                high = middle
        return max(high, alone_s)

    def _by_model(self) -> dict[str, dict[tuple[int, ...], int]]:
        found: defaultdict[str, dict[tuple[int, ...], int]] = defaultdict(dict)
        for call in self._asked.values():
            found[call.model][call.prompt] = call.answer_tokens
        return found

    def _by_run(self) -> list[list[_Asked]]:
        found: defaultdict[UUID, list[_Asked]] = defaultdict(list)
        for call in self._asked.values():
            found[call.run].append(call)
        return list(found.values())


def _most_at_once(calls: Iterable[_Asked]) -> int:
    """Of a run's calls, how many it waited for at the same time."""
    changes = sorted(change for call in calls for change in ((call.began_s, 1), (call.ended_s, -1)))
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def _path_s(calls: Sequence[_Asked], costs: Costs) -> float:
    """Of the run's longest path, every call decoded alone, its prompt found in the cache."""
    done: list[tuple[float, float]] = []  # when a call ended, and the length of its path
    for call in sorted(calls, key=lambda call: call.began_s):
        before = max((length for ended_s, length in done if ended_s <= call.began_s), default=0.0)
        done.append((call.ended_s, before + call.answer_tokens * costs.decode_s(1)))
    return max(length for _, length in done)


@dataclass
class _Model:
    """A model's calls: by prompt, the tokens that answer it."""

    costs: Costs
    replicas: int
    kv_tokens: int
    answers: dict[tuple[int, ...], int]
    prompt_s: float = field(init=False, default=0.0)
    tokens: int = field(init=False, default=0)
    """To decode; the prompt's last step gives the first one."""
    most: float = field(init=False)
    """Requests that decode at once on a replica, in the mean."""

    def __post_init__(self) -> None:
        costs, block = self.costs, self.costs.block_tokens
        cache = KVCache(0, block)
        named = {ids: cache.blocks(ids) for ids in self.answers}
        shared = Counter(name for names in named.values() for name in names)
        seen: set[int] = set()
        held = 0.0
        for ids, answer in self.answers.items():
            names = named[ids]
            known = next((n for n, name in enumerate(names) if name not in seen), len(names))
            seen.update(names)
            self.prompt_s += costs.prompt_s(known * block, len(ids))
            self.tokens += answer - 1
            own = -(-(len(ids) + answer) // block) - len(names)
            held += (answer - 1) * (own + sum(1 / shared[name] for name in names))
        self.most = float(costs.slots)
        if self.kv_tokens and held:
            self.most = min(self.most, self.tokens * (self.kv_tokens // block) / held)
        self.most = max(1.0, self.most)

    def least_s(self, at_once: float) -> float:
        """Of its busiest replica at least, with so many requests at once on each."""
        return (self.prompt_s + self.tokens * self.costs.decode_s(at_once) / at_once) / self.replicas

    def request_s(self, within_s: float) -> float | None:
        """Seconds that its requests take together, with as few at once as end in that time; None: none do."""
        if self.least_s(self.most) > within_s:
            return None
        low, high = 1.0, self.most
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.least_s(middle) > within_s else (low, middle)
        return self.tokens * self.costs.decode_s(high)
