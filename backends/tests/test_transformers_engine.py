"""The engine on transformers' continuous batching: what the conformance suite doesn't know about it."""

import asyncio
import contextlib
import json
import math
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

import accel_local
from accel.engine import ChatMessage, Constraint, Delta, LLMEngine, Priority, Sampling
from accel.engine.conformance import FOX, LLM_CHECKS, QUESTION, LLMCheck, answer, name
from accel.errors import (
    AccelError,
    ConfigurationError,
    EngineClosed,
    EngineStartError,
    InvalidRequest,
    MissingExtra,
    ModelNotFound,
    NotEnoughMemory,
)
from accel_local.models import DEFAULT_LLM, ensure_model
from accel_transformers import TransformersConfig
from accel_transformers.engine import TransformersEngine
from accel_transformers.text import Detokenizer, StopStrings

pytestmark = [pytest.mark.engines, pytest.mark.timeout(180)]

CONFIG = TransformersConfig(dtype="float32")
ENDLESS = Sampling(max_tokens=4000, ignore_end=True)
LONGEST = 4096
"""Of the small model."""


@pytest.fixture(scope="session")
def engine() -> TransformersEngine:
    pytest.importorskip("transformers", reason="the extra transformers is not installed")
    ensure_model(DEFAULT_LLM)
    return accel_local.engine(CONFIG)


@pytest.fixture(scope="session")
def small_config(engine: TransformersEngine, tmp_path_factory: pytest.TempPathFactory) -> TransformersConfig:
    """A very small model with random weights. Two slots, but no room for both of their answers at once."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("small-model")
    tokenizer = AutoTokenizer.from_pretrained(ensure_model(DEFAULT_LLM))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=LONGEST, initializer_range=0.2, eos_token_id=2, dtype="float32",
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return TransformersConfig(str(folder), max_model_len=96, max_num_seqs=2, kv_cache_gib=_gib_of(112), block_tokens=16)


def _gib_of(tokens: int) -> float:
    """Their keys and values in the two layers of the small model."""
    return (tokens * 2 * 2 * 32 * 4 + 1) / 2**30


@pytest.fixture
async def small(small_config: TransformersConfig) -> AsyncIterator[TransformersEngine]:
    """On the test's own loop, and gone after it."""
    made = small_config.create()
    await made.start()
    yield made
    await made.close()


def run(engine: LLMEngine, prompt: Any, sampling: Sampling) -> tuple[str, list[Delta]]:
    return accel_local.run(answer(engine, prompt, sampling))


def ask(text: str) -> Sequence[ChatMessage]:
    return [{"role": "user", "content": text}]


@pytest.mark.parametrize("check", LLM_CHECKS, ids=name)
def test_transformers(check: LLMCheck, engine: TransformersEngine) -> None:
    assert isinstance(engine, LLMEngine)
    accel_local.run(check(engine))


# --- answers


def test_greedy_answers_are_those_of_plain_generate(engine: TransformersEngine) -> None:
    """Also where the prompt takes several steps, is in the cache, and is served beside another."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = ensure_model(DEFAULT_LLM)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompts = [engine.encode(ask(f"{FOX * n} What does the fox do?")) for n in (1, 16)]
    assert len(prompts[1]) > 256

    def plain(ids: list[int]) -> str:
        whole = model.generate(torch.tensor([ids]), max_new_tokens=10, do_sample=False)
        return str(tokenizer.decode(whole[0][len(ids) :], skip_special_tokens=True))

    async def together() -> list[tuple[str, list[Delta]]]:
        return await asyncio.gather(*(answer(engine, ids, Sampling(max_tokens=10)) for ids in prompts))

    expected = [plain(ids) for ids in prompts]
    for _ in range(2):
        assert [text for text, _ in accel_local.run(together())] == expected


def test_sampling_is_each_request_s_own(engine: TransformersEngine) -> None:
    def sampled(seed: int, top_p: float = 1.0) -> Sampling:
        return Sampling(max_tokens=12, temperature=1.5, seed=seed, top_p=top_p)

    async def together(*samplings: Sampling) -> list[str]:
        return [text for text, _ in await asyncio.gather(*(answer(engine, QUESTION, s) for s in samplings))]

    greedy, one, other, nucleus = accel_local.run(
        together(Sampling(max_tokens=12), sampled(1), sampled(2), sampled(3, top_p=1e-6))
    )
    assert run(engine, QUESTION, Sampling(max_tokens=12))[0] == greedy
    assert run(engine, QUESTION, sampled(1))[0] == one != other
    assert nucleus == greedy, "a nucleus of one token leaves no choice"
    unseeded = Sampling(max_tokens=12, temperature=1.5)
    assert len(set(accel_local.run(together(unseeded, unseeded, unseeded)))) > 1


def test_tokens_are_drawn_by_their_probability(engine: TransformersEngine) -> None:
    import torch

    from accel_transformers.batching import draw_tokens

    scores = torch.tensor([0.2, 0.5, 0.3]).log()

    def drawn(draw: float, top_p: float = 2.0, temperature: float = 1.0) -> int:
        settings = torch.tensor([[temperature, top_p, draw]])
        return int(draw_tokens(scores.unsqueeze(0), *settings.unbind(dim=1)))

    # Most probable first: token 1 up to 0.5, token 2 up to 0.8, token 0.
    assert [drawn(d) for d in (0.0, 0.49, 0.51, 0.79, 0.81, 0.99999999)] == [1, 1, 2, 2, 0, 0]
    # A nucleus of 0.6 are the first two, with 5/8 and 3/8.
    assert [drawn(d, top_p=0.6) for d in (0.0, 0.62, 0.63, 0.99999999)] == [1, 1, 2, 2]
    assert {drawn(d / 100, top_p=0.5) for d in range(100)} == {1}
    assert {drawn(d / 100, temperature=0.01) for d in range(100)} == {1}
    assert [drawn(d, temperature=1e6) for d in (0.33, 0.34, 0.66, 0.67)] == [1, 2, 2, 0]
    temperatures, whole, draws = torch.tensor([1.0, 0.01]), torch.tensor([2.0, 2.0]), torch.tensor([0.9, 0.9])
    rows = draw_tokens(scores.expand(2, 3), temperatures, whole, draws)
    assert rows.tolist() == [0, 1]


def test_the_end_of_an_answer(engine: TransformersEngine) -> None:
    prompt = ask("What is the capital of France? Answer with one word.")
    text, deltas = run(engine, prompt, Sampling(max_tokens=100))
    usage = deltas[-1].usage
    assert deltas[-1].finish_reason == "stop" and usage is not None and usage.completion_tokens < 100
    assert "<|" not in text
    longer, deltas = run(engine, prompt, Sampling(max_tokens=usage.completion_tokens + 5, ignore_end=True))
    assert deltas[-1].finish_reason == "length" and deltas[-1].usage is not None
    assert deltas[-1].usage.completion_tokens == usage.completion_tokens + 5 and longer.startswith(text)


async def test_the_longest_prompt_has_room_for_one_token(small: TransformersEngine) -> None:
    assert small.max_prompt_tokens == 95
    _, deltas = await answer(small, [500] * small.max_prompt_tokens, Sampling(max_tokens=50, ignore_end=True))
    assert deltas[-1].finish_reason == "length" and deltas[-1].usage is not None
    assert deltas[-1].usage.completion_tokens == 1


# --- wrong requests


WRONG: dict[str, Sampling] = {
    "no number": Sampling(temperature=math.nan),
    "endless": Sampling(temperature=math.inf),
    "no nucleus": Sampling(temperature=1.0, top_p=0.0),
    "large nucleus": Sampling(temperature=1.0, top_p=1.5),
    "no tokens": Sampling(max_tokens=0),
    "empty stop": Sampling(stop=("a", "")),
    "no end": Sampling(ignore_end=True, constraint=Constraint("regex", "a")),
    "broken regex": Sampling(constraint=Constraint("regex", "(")),
    "no choice": Sampling(constraint=Constraint("choice", ())),
    "no JSON": Sampling(constraint=Constraint("json_schema", "{")),
    "no schema": Sampling(constraint=Constraint("json_schema", '{"anyOf": 3}')),
    "ignored keyword": Sampling(constraint=Constraint("json_schema", '{"type": "integer", "multipleOf": 3}')),
}


def test_wrong_requests_are_values_and_leave_neighbours_alone(engine: TransformersEngine) -> None:
    good = Sampling(max_tokens=4)
    expected, _ = run(engine, QUESTION, good)

    async def together() -> list[tuple[str, list[Delta]]]:
        asked = [answer(engine, QUESTION, wrong) for wrong in WRONG.values()]
        unknown = [answer(engine, ids, good) for ids in ([5, 10**6], [-1])]
        return await asyncio.gather(*asked, *unknown, answer(engine, QUESTION, good))

    *refused, served = accel_local.run(together())
    for wrong, (_, deltas) in zip([*WRONG, "unknown token", "negative token"], refused, strict=True):
        assert len(deltas) == 1 and isinstance(deltas[0].error, InvalidRequest), wrong
    assert served[0] == expected


def test_without_xgrammar_only_constraints_are_refused(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    _, deltas = run(engine, QUESTION, Sampling(constraint=Constraint("regex", "a")))
    assert isinstance(deltas[0].error, InvalidRequest) and "vLLM" in deltas[0].error.remedy
    assert run(engine, QUESTION, Sampling(max_tokens=2))[0]


# --- constraints


def test_constraints_beside_free_requests(engine: TransformersEngine) -> None:
    odd = ('a "quoted" \\ back\nslash', "naïve 東京 🙂")

    async def together() -> list[tuple[str, list[Delta]]]:
        return await asyncio.gather(
            answer(engine, QUESTION, Sampling(max_tokens=12)),
            answer(engine, QUESTION, Sampling(max_tokens=40, constraint=Constraint("choice", odd[:1]))),
            answer(engine, QUESTION, Sampling(max_tokens=40, constraint=Constraint("choice", odd[1:]))),
            answer(
                engine,
                QUESTION,
                Sampling(max_tokens=12, temperature=2.0, seed=5, constraint=Constraint("regex", "[a-f]{4}")),
            ),
        )

    free, first, second, sampled = accel_local.run(together())
    assert free[0] == run(engine, QUESTION, Sampling(max_tokens=12))[0]
    assert (first[0], second[0]) == odd
    assert len(sampled[0]) == 4 and set(sampled[0]) <= set("abcdef")
    assert {deltas[-1].finish_reason for _, deltas in (first, second, sampled)} == {"stop"}
    cut, deltas = run(engine, QUESTION, Sampling(max_tokens=3, constraint=Constraint("regex", "(xy){400}")))
    assert deltas[-1].finish_reason == "length" and set(cut) <= {"x", "y"}


def test_schemas_that_xgrammar_would_not_keep_are_refused() -> None:
    from pydantic import BaseModel, Field

    from accel_transformers.schemas import check_schema

    class Inner(BaseModel):
        kind: Literal["a", "b"]
        size: int = Field(ge=1, le=5)

    class Model(BaseModel):
        """As programs write them."""

        name: str = Field(description="the name", min_length=1)
        parts: list[Inner] = Field(min_length=1, max_length=3)
        note: str | None = None
        scores: dict[str, float]

    kept: list[Any] = [
        True,
        {},
        Model.model_json_schema(),
        {"type": ["string", "null"], "maxLength": 3},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "boolean"}}},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": False},
        {"type": "string", "format": "date"},
    ]
    for schema in kept:
        check_schema(json.dumps(schema))
    refused: list[Any] = [
        False,
        [1],
        {"minLength": 2},
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        {"type": "object", "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 2}}},
        {"type": "string", "pattern": "^a+$", "maxLength": 2},
        {"type": "string", "format": "iri"},
        {"type": "string", "enum": ["a", 1]},
        {"type": "boolean", "const": 1},
        {"allOf": [{"type": "integer"}, {"minimum": 3}]},
        {"$ref": "#/$defs/A", "minimum": 3, "$defs": {"A": {"type": "integer"}}},
        {"type": "object", "anyOf": [{"required": ["a"]}]},
        {"not": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"if": {}, "then": {}}]}}},
    ]
    for schema in refused:
        with pytest.raises(InvalidRequest):
            check_schema(json.dumps(schema))


# --- text


def test_detokenized_pieces_make_up_the_text(engine: TransformersEngine) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(ensure_model(DEFAULT_LLM))
    prompt = engine.encode(QUESTION)
    for text in ("naïve 東京 🙂👩‍🚀 end", "  two  spaces\n\n\tand a tab", "a", ""):
        ids = tokenizer.encode(text, add_special_tokens=False)
        decoder = Detokenizer(tokenizer, prompt)
        pieces = [decoder.add([token]) for token in ids] + [decoder.add([], last=True)]
        assert "".join(pieces) == text and not any("\ufffd" in piece for piece in pieces)
    half = tokenizer.encode("🙂", add_special_tokens=False)[:1]
    decoder = Detokenizer(tokenizer, prompt)
    assert decoder.add(half) == "" and decoder.add([], last=True) == tokenizer.decode(half)


@pytest.mark.parametrize("stops", [("END",), ("ab", "abc"), ("aab",), ("x",), ()])
@pytest.mark.parametrize("text", ["aaab", "some ENDing", "EN D", "abab", "caab aaab", ""])
def test_stop_strings_end_a_text_however_it_comes(text: str, stops: tuple[str, ...]) -> None:
    expected = text[: min((place for stop in stops if (place := text.find(stop)) >= 0), default=len(text))]
    for size in (1, 2, 3, 100):
        told, met, stop_strings = "", False, StopStrings(stops)
        for start in range(0, len(text), size):
            piece, met = stop_strings.add(text[start : start + size])
            told += piece
            assert expected.startswith(told)
            if met:
                break
        if not met:
            piece, met = stop_strings.add("", last=True)
            told += piece
        assert told == expected and met == any(stop in text for stop in stops)


# --- the cache, the order, the slots


def test_the_prefix_cache_is_counted_and_can_be_emptied(engine: TransformersEngine) -> None:
    prompt = ask(f"Unique to this test: obelisk. {FOX * 4}")

    def cached() -> int:
        usage = run(engine, prompt, Sampling(max_tokens=2))[1][-1].usage
        assert usage is not None
        return usage.cached_tokens

    whole_blocks = (len(engine.encode(prompt)) - 1) // 32 * 32
    assert cached() < whole_blocks and cached() == whole_blocks
    accel_local.run(engine.reset_prefix_cache())
    assert cached() == 0


def test_prefill_warms_whole_blocks(engine: TransformersEngine) -> None:
    ids = engine.encode("Unique to that test: astrolabe. " + FOX * 10)
    assert accel_local.run(engine.prefill(ids[:100])) == 96
    usage = run(engine, ids, Sampling(max_tokens=2))[1][-1].usage
    assert usage is not None and usage.cached_tokens == 96
    with pytest.raises(InvalidRequest, match="at most"):
        accel_local.run(engine.prefill([5] * 5000))


def test_a_demand_overtakes_a_long_prompt(engine: TransformersEngine) -> None:
    """An early call's prompt takes four steps; the demand comes after it, and is answered before."""
    ended: list[str] = []

    async def one(label: str, prompt: Any, priority: Priority) -> None:
        await answer(engine, prompt, Sampling(max_tokens=1), priority)
        ended.append(label)

    async def both() -> None:
        early = asyncio.create_task(one("early", [700 + n % 600 for n in range(1000)], Priority(5)))
        await asyncio.sleep(0)  # it is with the engine now
        await asyncio.gather(one("demand", QUESTION, Priority(0)), early)

    accel_local.run(both())
    assert ended == ["demand", "early"]


@pytest.fixture
async def roomy(small_config: TransformersConfig) -> AsyncIterator[TransformersEngine]:
    """The small one, with room for two answers that take thousands of steps."""
    made = replace(small_config, max_model_len=LONGEST, kv_cache_gib=_gib_of(2 * LONGEST)).create()
    await made.start()
    yield made
    await made.close()


async def test_cancelled_requests_free_their_slots_for_the_most_urgent(roomy: TransformersEngine) -> None:
    running = [roomy.generate(f"{n} and", ENDLESS) for n in range(2)]
    for deltas in running:
        await anext(deltas)
    steps = roomy.steps
    ended: list[int] = []

    async def waiting(priority: int) -> None:
        await answer(roomy, QUESTION, Sampling(max_tokens=2), Priority(priority))
        ended.append(priority)

    tasks = [asyncio.create_task(waiting(priority)) for priority in (5, 2, 0)]
    await asyncio.sleep(0)  # all wait for a slot
    for deltas in running:
        await deltas.aclose()
    await asyncio.gather(*tasks)
    assert ended == [0, 2, 5]
    assert roomy.steps - steps < 2000, "two endless answers would have kept both slots for 4000 steps"


async def test_answers_survive_a_cache_that_is_too_small_for_all(small: TransformersEngine) -> None:
    """One of both is thrown out on the way, and starts again with what it has said so far."""
    prompts = ["One, two, three,", "The capital of Italy"]
    samplings = [
        Sampling(max_tokens=60, ignore_end=True),
        Sampling(max_tokens=60, ignore_end=True, temperature=0.8, seed=3),
    ]
    alone = [await answer(small, p, s) for p, s in zip(prompts, samplings, strict=True)]
    batching = small._batching
    assert batching is not None and batching.kv_tokens < 2 * 60
    together = await asyncio.gather(*(answer(small, p, s) for p, s in zip(prompts, samplings, strict=True)))
    for before, after in zip(alone, together, strict=True):
        assert before[0] == after[0]
        assert after[1][-1].usage is not None and after[1][-1].usage.completion_tokens == 60


# --- life


async def test_closing_ends_what_runs_and_leaves_nothing(small_config: TransformersConfig) -> None:
    import torch

    threads = set(threading.enumerate())
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    made = small_config.create()
    with pytest.raises(EngineClosed):
        made.encode("not yet")
    await made.start()
    assert torch.rand(1) == expected, "starting must not touch the program's own random numbers"
    deltas = made.generate(QUESTION, ENDLESS)
    await anext(deltas)
    await made.close()
    await made.close()
    with pytest.raises(EngineClosed):
        async for _ in deltas:
            pass
    with pytest.raises(EngineClosed):
        await answer(made, QUESTION, Sampling())
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
        assert not thread.is_alive()


async def test_a_cancelled_start_leaves_nothing(small_config: TransformersConfig) -> None:
    threads = set(threading.enumerate())
    made = small_config.create()
    start = asyncio.create_task(made.start())
    await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    for thread in set(threading.enumerate()) - threads:
        thread.join(60)
        assert not thread.is_alive()


PROGRAM = """
import sys
import accel_local
from accel.engine import Sampling
from accel_transformers import TransformersConfig

engine = accel_local.engine(TransformersConfig(sys.argv[1]))
deltas = accel_local.stream(engine.generate("The sea is", Sampling(max_tokens=4000, ignore_end=True)))
print("first", next(deltas).tokens, flush=True)
"""


def test_a_program_may_end_amid_work(small_config: TransformersConfig) -> None:
    command = [sys.executable, "-c", PROGRAM, small_config.model]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "first 1\n"), done.stderr


def test_what_stops_a_start_says_what_to_do(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failure(config: TransformersConfig) -> AccelError:
        before = accel_local.running()
        with pytest.raises(AccelError) as caught:
            accel_local.engine(config)
        assert accel_local.running() == before and caught.value.remedy
        return caught.value

    assert isinstance(failure(TransformersConfig(model="no-such-model")), ModelNotFound)
    assert isinstance(failure(TransformersConfig(dtype="float33")), ConfigurationError)
    assert isinstance(failure(TransformersConfig(attention="none-such")), EngineStartError)
    assert isinstance(failure(TransformersConfig(model=str(tmp_path))), EngineStartError)
    small = failure(TransformersConfig(dtype="float32", kv_cache_gib=0.1))
    assert isinstance(small, NotEnoughMemory) and "max_model_len=4096" in small.what
    assert isinstance(failure(TransformersConfig(kv_cache_gib=100_000)), NotEnoughMemory)
    import transformers

    with monkeypatch.context() as patched:
        patched.setattr(transformers, "__version__", "4.1.0")
        assert "pip install" in failure(TransformersConfig()).remedy
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "transformers", None)
        assert isinstance(failure(TransformersConfig()), MissingExtra)


# --- LangChain


async def test_as_a_chat_model(engine: TransformersEngine) -> None:
    pytest.importorskip("langchain_core", reason="the extra langgraph is not installed")
    from langchain_core.language_models.chat_models import generate_from_stream
    from langchain_core.messages import HumanMessage

    from accel_langgraph import AccelChatModel

    chat = AccelChatModel(engine=CONFIG, max_tokens=8)
    assert accel_local.engine(chat.engine_config) is engine
    question = [HumanMessage("List three colours, one per line.")]
    chat.invoke(question)
    for settings in ({"stop": ["\n"]}, {"temperature": 1.0, "seed": 4}):
        whole = chat._generate(question, **settings)
        assert whole == generate_from_stream(chat._stream(question, **settings))
        assert whole == await chat._agenerate(question, **settings)
    assert chat.invoke("Which colour is warm?", choice=["red", "blue"]).text in ("red", "blue")
    known = "Notes: " + "the harbour was quiet and the astronaut waited above the pier. " * 4
    warmed = chat.accel_prefill([HumanMessage(known)])
    message = chat.invoke([HumanMessage(known + "What waited?")])
    assert message.usage_metadata is not None and warmed >= 32
    assert message.usage_metadata["input_token_details"]["cache_read"] >= warmed
    with contextlib.closing(chat.stream("Tell a long story.", max_tokens=3000)) as chunks:
        next(iter(chunks))
    with pytest.raises(InvalidRequest, match="at most"):
        chat.invoke("word " * 6000)
