"""Tools of AccelChatModel beyond the standard tests: how calls are read, forced, and told to the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import jsonschema
import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from accel.engine import ChatMessage, LLMEngine, Prompt
from accel.engine.profile import Profile, ProfileFile
from accel.errors import ConfigurationError, InvalidRequest
from accel_langgraph import prompts
from accel_langgraph.chat_model import AccelChatModel
from accel_langgraph.tool_calls import CallReader, call_id
from accel_langgraph.tools import Offer, openai_tools
from accel_sim import SimLLMConfig
from accel_sim.llm import SimLLM


@tool
def get_weather(place: str, days: int = 1) -> str:
    """The weather at a place."""
    return "sunny"


@tool
def stop_all() -> str:
    """Stop everything."""
    return "stopped"


QUESTION: list[BaseMessage] = [HumanMessage("What is the weather in the harbour tomorrow?")]
OFFER = Offer(tuple(openai_tools([get_weather, stop_all])))


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("profile") / "quick.json"
    steps = Profile("llm", prefill=((10, 1e-5), (1000, 1e-4)), decode=((1, 1e-5),), batch_tokens=2048, block_tokens=4)
    ProfileFile({"llm": steps}).save(path)
    return str(path)


@pytest.fixture
def model(profile: str) -> AccelChatModel:
    return AccelChatModel(engine=SimLLMConfig(profile, name="tools"))


# --- reading calls

WEATHER = '{"name": "get_weather", "arguments": {"place": "Oslo"}}'
ANSWERS: list[tuple[str, str, list[tuple[str, Any]], int]] = [
    # text; content, calls, how many invalid ones
    ("It is sunny. ", "It is sunny. ", [], 0),
    ("", "", [], 0),
    (f"<tool_call>\n{WEATHER}\n</tool_call>", "", [("get_weather", {"place": "Oslo"})], 0),
    (f"Let me see.\n<tool_call>{WEATHER}</tool_call>\n", "Let me see.", [("get_weather", {"place": "Oslo"})], 0),
    (f"<tool_call>{WEATHER}</tool_call> so", " so", [("get_weather", {"place": "Oslo"})], 0),
    (
        f'<tool_call>{WEATHER}</tool_call>\n<tool_call>{{"name": "stop_all", "arguments": {{}}}}</tool_call>',
        "",
        [("get_weather", {"place": "Oslo"}), ("stop_all", {})],
        0,
    ),
    ('<tool_call>{"name": "other", "parameters": {"a": [1, null]}}</tool_call>', "", [("other", {"a": [1, None]})], 0),
    ('<tool_call>{"name": "a", "arguments": "{\\"b\\": 1}"}</tool_call>', "", [("a", {"b": 1})], 0),
    ('<tool_call>{"name": "a", "arguments": {"b": "</tool_call>"}}</tool_call>', "", [("a", {"b": "</tool_call>"})], 0),
    (f"<tool_call>{WEATHER}", "", [("get_weather", {"place": "Oslo"})], 0),  # the end was a stop string
    ('<tool_call>{"name": "get_weather", "arguments": {"place": "Os', "", [], 1),
    (f"<tool_call>no</tool_call> or <tool_call>{WEATHER}</tool_call>", " or", [("get_weather", {"place": "Oslo"})], 1),
    ("<tool_call>", "", [], 1),
    ("a < b <tool", "a < b <tool", [], 0),
    (WEATHER, "", [("get_weather", {"place": "Oslo"})], 0),
    (f" [TOOL_CALLS] [{WEATHER}]", "", [("get_weather", {"place": "Oslo"})], 0),
    ('{"name": "Ada", "arguments": {}}', '{"name": "Ada", "arguments": {}}', [], 0),  # JSON that is no call of a tool
    ('{"colour": "red"}', '{"colour": "red"}', [], 0),
    ("[1] says so", "[1] says so", [], 0),
]  # fmt: skip


def read(offered: Offer, pieces: Sequence[str]) -> AIMessageChunk:
    """As the chat model puts pieces together."""
    reader = CallReader(offered, "prompt")
    merged = AIMessageChunk(content="")
    for piece in (*map(reader.add, pieces), reader.close()):
        merged += AIMessageChunk(content=piece.text, tool_call_chunks=piece.calls)
    return merged


@pytest.mark.parametrize(("text", "content", "calls", "invalid"), ANSWERS)
def test_calls_are_found_in_an_answer_however_it_comes(
    text: str, content: str, calls: list[tuple[str, Any]], invalid: int
) -> None:
    whole = read(OFFER, [text])
    assert whole.content == content
    assert [(call["name"], call["args"]) for call in whole.tool_calls] == calls
    assert len(whole.invalid_tool_calls) == invalid
    assert read(OFFER, list(text)) == whole
    for cut in range(len(text)):
        assert read(OFFER, [text[:cut], text[cut:]]) == whole


@pytest.mark.parametrize("several", [False, True])
def test_a_forced_answer_that_was_cut_off_is_never_a_call_with_less(several: bool) -> None:
    forced = Offer(OFFER.tools, "required", several)
    text = f"[{WEATHER}, {WEATHER}]" if several else WEATHER
    for end in range(1, len(text) + 1):
        found = read(forced, [text[:end]])
        assert found.content == "" and found == read(forced, list(text[:end]))
        assert all(call["args"] == {"place": "Oslo"} for call in found.tool_calls)
        assert len(found.tool_calls) == text[:end].count("}}")
    assert len(found.tool_calls) == 1 + several and not found.invalid_tool_calls


def test_ids_are_functions_of_the_prompt_and_the_position() -> None:
    ids = {call_id(prompt, position) for prompt in ("a", "b", "a ") for position in range(50)}
    assert len(ids) == 150 and all(len(found) == 9 and found.isalnum() for found in ids)
    assert call_id("a", 1) == call_id("a", 1)


# --- what may be decoded


class Leaf(BaseModel):
    size: int


class Tree(BaseModel):
    """A tree."""

    name: str
    leaf: Leaf
    branches: list[Tree]


def test_schemas_of_several_tools_keep_their_own_definitions() -> None:
    def defined(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"it": {"$ref": "#/$defs/It"}, "again": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
            "required": ["it"],
            "$defs": {"It": {"type": kind}},
        }

    tools = [
        {"type": "function", "function": {"name": kind, "description": kind, "parameters": defined(kind)}}
        for kind in ("string", "integer")
    ]
    constraint = Offer(tuple(tools), "required").constraint()
    assert constraint is not None and constraint.kind == "json_schema" and isinstance(constraint.value, str)
    valid = jsonschema.Draft202012Validator(json.loads(constraint.value)).is_valid
    assert valid({"name": "string", "arguments": {"it": "a", "again": {"it": "b"}}})
    assert valid({"name": "integer", "arguments": {"it": 1, "again": None}})
    assert not valid({"name": "string", "arguments": {"it": 1}})
    assert not valid({"name": "integer", "arguments": {"it": 1, "again": {"it": "a"}}})
    assert not valid({"name": "other", "arguments": {"it": 1}})


def test_a_choice_among_tools_without_arguments_is_a_choice() -> None:
    constraint = Offer(OFFER.tools, "stop_all").constraint()
    assert constraint is not None and constraint.kind == "choice"
    assert [json.loads(answer) for answer in constraint.value] == [{"name": "stop_all", "arguments": {}}]
    assert OFFER.constraint() is None


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"tool_choice": "auto"},
        {"tool_choice": "any"},
        {"tool_choice": True, "parallel_tool_calls": True},
        {"tool_choice": "stop_all"},
        {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}, "strict": True},
        {"tool_choice": "none"},
    ],
)
async def test_streams_equal(model: AccelChatModel, kwargs: dict[str, Any]) -> None:
    bound: Any = model.bind_tools([get_weather, stop_all], **kwargs)
    for cut in (1, 7, 20, 33, 400):
        settings = {**bound.kwargs, "max_tokens": cut}
        model._generate(QUESTION, **settings)  # so that all four find the same prefix in the cache
        whole = model._generate(QUESTION, **settings)
        assert generate_from_stream(model._stream(QUESTION, **settings)) == whole
        assert await model._agenerate(QUESTION, **settings) == whole
        chunks = [chunk async for chunk in model._astream(QUESTION, **settings)]
        assert generate_from_stream(iter(chunks)) == whole
    message = whole.generations[0].message
    assert isinstance(message, AIMessage)
    if kwargs.get("tool_choice", "auto") not in ("auto", "none"):
        assert message.tool_calls and not message.invalid_tool_calls and message.content == ""
    if kwargs.get("tool_choice") == "none":
        assert not message.tool_calls and message.content


def test_bad_calls_say_what_is_wrong(model: AccelChatModel) -> None:
    with pytest.raises(ConfigurationError, match="'get_wether' names none") as caught:
        model.bind_tools([get_weather], tool_choice="get_wether")
    assert "'get_weather'" in caught.value.remedy
    with pytest.raises(ConfigurationError, match="at least one tool"):
        model.bind_tools([])
    with pytest.raises(ConfigurationError, match="no function"):
        model.bind_tools([{"type": "web_search"}])
    with pytest.raises(ConfigurationError, match="came without tools"):
        model.invoke(QUESTION, tool_choice="any")
    with pytest.raises(ConfigurationError, match="tools exclude"):
        model.bind_tools([get_weather]).invoke(QUESTION, choice=["a"])
    with pytest.raises(ConfigurationError, match="'grammar'"):
        model.with_structured_output(Leaf, method="grammar")
    with pytest.raises(ConfigurationError, match="needs a schema"):
        model.with_structured_output(None)
    with pytest.raises(ConfigurationError, match="engine of its own"):
        model.invoke(QUESTION, model="another")


# --- what the model is told

CONVERSATION: list[BaseMessage] = [
    SystemMessage("Be kind."),
    HumanMessage("Weather in Oslo and Rome?"),
    AIMessage(
        "I look.",
        tool_calls=[
            {"name": "get_weather", "args": {"place": place}, "id": place, "type": "tool_call"}
            for place in ("Oslo", "Rome")
        ],
    ),
    ToolMessage("rain", tool_call_id="Oslo"),
    ToolMessage([{"type": "text", "text": "sun"}], tool_call_id="Rome", name="get_weather"),
    HumanMessage("And?"),
]


def test_a_conversation_as_plain_text() -> None:
    turns = prompts.plain(CONVERSATION, OFFER)
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "user", "user"]
    assert turns[0]["content"].endswith("\n\nBe kind.") and '"name": "get_weather"' in turns[0]["content"]
    reader = CallReader(OFFER, "")
    piece, rest = reader.add(turns[2]["content"]), reader.close()
    assert piece.text == "I look." and len([*piece.calls, *rest.calls]) == 2, "it is told as it would be answered"
    assert turns[3]["content"] == ("<tool_response>\nrain\n</tool_response>\n<tool_response>\nsun\n</tool_response>")
    cut = prompts.plain(CONVERSATION[:5], OFFER, cut=True)
    assert turns[3]["content"].startswith(cut[3]["content"]) and cut[3]["content"].endswith("sun")


def rendered(turns: Sequence[ChatMessage]) -> str:
    """By a chat template that knows tools."""
    text = json.dumps(turns[0].get("tools", []))
    for turn in turns:
        text += f"\n{turn['role']}: {turn['content']}{json.dumps(turn.get('tool_calls', ''))}"
    return text


def test_a_template_that_knows_tools_is_given_them() -> None:
    assert prompts.knows_tools(lambda turns: [ord(letter) for letter in rendered(turns)])
    assert not prompts.knows_tools(lambda turns: [len(turn["content"]) for turn in turns])

    def strict(turns: Sequence[ChatMessage]) -> list[int]:
        raise InvalidRequest("The model's chat template rejects these messages.")

    assert not prompts.knows_tools(strict)
    turns = prompts.native(CONVERSATION, OFFER)
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [shown["function"]["name"] for shown in turns[0]["tools"]] == ["get_weather", "stop_all"]
    assert turns[2]["tool_calls"][1] == {
        "id": "Rome",
        "type": "function",
        "function": {"name": "get_weather", "arguments": {"place": "Rome"}},
    }
    assert turns[4] == {"role": "tool", "content": "sun", "tool_call_id": "Rome", "name": "get_weather"}


class Aware(SimLLM):
    """Renders tools by a template of its own."""

    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str) or not prompt or isinstance(prompt[0], int):
            return super().encode(prompt)
        turns = [turn for turn in prompt if not isinstance(turn, int)]
        return super().encode(f"<|system|>\n{rendered(turns)}<|user|>\n{turns[-1]['content']}<|assistant|>\n")


@dataclass(frozen=True)
class AwareConfig:
    base: SimLLMConfig
    label: str = "simulated model whose template knows tools"

    def create(self) -> LLMEngine:
        return Aware(self.base)


def test_an_engine_whose_template_knows_tools_renders_them(profile: str, model: AccelChatModel) -> None:
    aware = AccelChatModel(engine=AwareConfig(SimLLMConfig(profile)))
    answer = aware.bind_tools([get_weather], tool_choice="any").invoke(CONVERSATION)
    assert [call["name"] for call in answer.tool_calls] == ["get_weather"]
    told = model.bind_tools([get_weather], tool_choice="any").invoke(CONVERSATION)
    assert answer.tool_calls[0]["id"] != told.tool_calls[0]["id"], "it is another prompt"
    assert answer.response_metadata["model_name"] == AwareConfig.label


def test_prefill_warms_what_a_call_with_tools_finds(model: AccelChatModel) -> None:
    bound: Any = model.bind_tools([get_weather], tool_choice="any")
    known = "The tide tables of the old harbour are kept on the pier. " * 4
    result = ToolMessage(known, tool_call_id="Rome")
    warmed = model.accel_prefill([*CONVERSATION[:4], result], **bound.kwargs)
    whole = bound.invoke([*CONVERSATION[:4], result.model_copy(update={"content": known + "It is sunny."})])
    assert whole.usage_metadata["input_token_details"]["cache_read"] >= warmed > 100


# --- structured output


class Joke(BaseModel):
    setup: str
    laughs: int


class JokeV1(BaseModelV1):
    setup: str
    laughs: int


class JokeDict(TypedDict):
    setup: str
    laughs: int


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
@pytest.mark.parametrize("schema", [Joke, JokeV1, JokeDict, Joke.model_json_schema()])
def test_structured_output(model: AccelChatModel, method: str, schema: Any) -> None:
    asking = model.with_structured_output(schema, method=method)
    found: Any = asking.invoke("Tell a joke.")
    if schema in (Joke, JokeV1):
        assert isinstance(found, schema)
    else:
        assert set(found) == {"setup", "laughs"} and isinstance(found["laughs"], int)
    assert list(asking.stream("Tell a joke."))[-1] == found
    raw: Any = model.with_structured_output(schema, method=method, include_raw=True).invoke("Tell a joke.")
    assert raw["parsed"] == found and raw["parsing_error"] is None and isinstance(raw["raw"], AIMessage)
    assert isinstance(model.with_structured_output(schema, method=method, strict=True).invoke("Tell."), type(found))


def test_structured_output_grows_while_it_is_decoded(model: AccelChatModel) -> None:
    parts: list[Any] = list(model.with_structured_output(JokeDict).stream("Tell a joke."))
    setups = [part["setup"] for part in parts if "setup" in part]
    assert len(set(setups)) > 2 and all(setups[-1].startswith(setup) for setup in setups)


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_output_that_was_cut_off_is_an_error(model: AccelChatModel, method: str) -> None:
    short = model.model_copy(update={"max_tokens": 9})
    with pytest.raises(OutputParserException):
        short.with_structured_output(Joke, method=method).invoke("Tell a joke.")
    found: Any = short.with_structured_output(Joke, method=method, include_raw=True).invoke("Tell a joke.")
    assert found["parsed"] is None and isinstance(found["parsing_error"], OutputParserException)
    assert found["raw"].response_metadata["finish_reason"] == "length"


def test_any_json_object(model: AccelChatModel) -> None:
    assert isinstance(model.with_structured_output(None, method="json_mode").invoke("JSON, please."), dict)
    with pytest.raises(ConfigurationError, match="response_format"):
        model.invoke(QUESTION, response_format={"type": "xml"})
    text = model.invoke(QUESTION).content
    assert model.invoke(QUESTION, response_format={"type": "text"}).content == text
