"""The services that public programs call, in this process: what they answer, and how long that takes.

A request is answered by a function of what it asks, in OpenAI's, Anthropic's, Google's, Ollama's or Tavily's form;
anything else is a web page. Language models follow the instructions of their prompt (`accel_sim.answers`), fill the
schemas they are given, and obey what is said of one program (`Manner`). Times in a prompt count for nothing, so that a
program which tells the model the time gets the same answer a second later.

Everything waits a share of what usual services take: `WAITS_S`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any
from urllib.parse import parse_qs, urlsplit

from accel.engine import Constraint, Sampling
from accel_sim.answers import answer
from accel_sim.engines import text_vector
from accel_sim.tokens import PieceTokenizer

USUAL_S = {
    "first token": 0.2,
    "prompt token": 0.0001,
    "token": 0.02,
    "embedding": 0.15,
    "search": 1.0,
    "page": 0.3,
}
"""What a hosted model of middle size (50 tokens a second), an embedding, a web search and a page take."""
QUICK, USUAL = 0.1, 1.0
"""Shares of it: at a tenth, the work of a framework and of Accel weighs ten times as much."""
WAITS_S: dict[str, float] = {}


def set_pace(share: float) -> None:
    """What everything waits from now on."""
    WAITS_S.update((what, round(seconds * share, 9)) for what, seconds in USUAL_S.items())


set_pace(QUICK)
DIMENSION = 256
PIECES = 8
"""Tokens in one piece of a stream."""
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?|\b\d\d:\d\d:\d\d(\.\d+)?\b"
    r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)
_METADATA = re.compile(r"metadata=\{([^{}]*)\}")
_tokenizer = PieceTokenizer()


def lasting(text: str) -> str:
    """A text without times and made-up ids; with metadata in order, which Chroma gives in any."""
    ordered = _METADATA.sub(lambda found: f"metadata={{{', '.join(sorted(found[1].split(', ')))}}}", text)
    return _TIMES.sub("", ordered)


@dataclass(frozen=True)
class Asked:
    """What a language model is asked, whoever's protocol it came in."""

    prompt: str
    """All messages, each as `<|role|>`, its text, and `<|end|>`."""
    rounds: int = 0
    """How many times the model has called tools since the user's last message."""

    def dice(self, *salt: object) -> float:
        """From 0 to 1."""
        digest = hashlib.blake2b(repr((self.prompt, *salt)).encode("utf-8", "replace"), digest_size=6).digest()
        return int.from_bytes(digest, "big") / 2**48


Said = str | Callable[[Asked], str]


@dataclass(frozen=True)
class Manner:
    """How the models of one program answer where that is not left to the prompt."""

    says: Mapping[str, Said] = field(default_factory=dict)
    """What it answers to prompts in which this pattern is found; the first one counts."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values of fields of this name in what is filled by a schema; of a function, what it makes of the prompt."""
    rounds: int = 1
    """How many times it calls tools that it may call, before it answers."""
    tools: Callable[[Asked, Sequence[str]], Sequence[str]] | None = None
    """Which of the tools on offer it calls in a round."""


@dataclass
class Reply:
    """What a service sends: at once, or in `pieces` (seconds before each, bytes)."""

    seconds: float
    body: bytes
    kind: str = "application/json"
    pieces: Sequence[tuple[float, bytes]] = ()
    status: int = 200


class Services:
    """All of them. Thread-safe: their answers depend on the request alone."""

    def __init__(self, manner: Manner | None = None) -> None:
        self.manner = manner or Manner()
        self.waits = True
        """Off while a program is loaded."""
        self.worked_s = 0.0
        """Of the processor, for answers: what is elsewhere in reality."""
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()

    def taken(self) -> Counter[str]:
        """What has been asked since the last time, and how often: digests."""
        with self._lock:
            seen, self._seen = self._seen, Counter()
        return seen

    def reply(self, method: str, url: str, body: bytes) -> Reply:
        began = time.thread_time()
        split = urlsplit(url)
        sent = _json(body)
        with self._lock:
            self._seen[_asked_for(split.hostname or "", split.path, sent, body)] += 1
        reply = self._reply(split.hostname or "", split.path, sent if isinstance(sent, dict) else {}, url)
        if not self.waits:
            reply.seconds, reply.pieces = 0.0, [(0.0, piece) for _, piece in reply.pieces]
        with self._lock:
            self.worked_s += time.thread_time() - began
        return reply

    def _reply(self, host: str, path: str, sent: dict[str, Any], url: str) -> Reply:
        if path.endswith("/chat/completions"):
            return self._openai(sent)
        if path.endswith("/embeddings"):
            return _embeddings(sent)
        if path.endswith("/v1/messages"):
            return self._anthropic(sent)
        if path.endswith("/api/chat"):
            return self._ollama(sent)
        if ":generateContent" in path or ":streamGenerateContent" in path:
            return self._google(sent, "stream" in path)
        if "tavily" in host:
            return _search(sent)
        if host.endswith("wikipedia.org"):
            return _encyclopedia(parse_qs(urlsplit(url).query))
        return _page(url)

    # --- language models

    def _openai(self, sent: Mapping[str, Any]) -> Reply:
        asked = _asked(sent.get("messages", ()))
        tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in sent.get("tools") or ()}
        choice = sent.get("tool_choice")
        forced = choice["function"]["name"] if isinstance(choice, dict) else choice
        form = sent.get("response_format") or {}
        schema = form.get("json_schema", {}).get("schema") if form.get("type") == "json_schema" else None
        if form.get("type") == "json_object" and schema is None:
            schema = {"type": "object"} if "json" not in asked.prompt.lower() else None
        text, calls = self._answer(asked, tools, forced, schema)
        told = _named(calls, asked)
        shaped = [
            {"id": key, "type": "function", "function": {"name": name, "arguments": json.dumps(value)}}
            for key, name, value in told
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if shaped:
            message["tool_calls"] = shaped
        prompt, output = _tokens(asked.prompt), _tokens(text + json.dumps([value for _, _, value in told] or ""))
        usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
        base = {"id": f"chatcmpl-{_digest(asked.prompt)}", "created": 0, "model": sent.get("model", "")}
        why = "tool_calls" if calls else "stop"
        whole = {
            **base,
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": why}],
            "usage": usage,
        }
        if not sent.get("stream"):
            return Reply(_takes_s(prompt, output), _bytes(whole))

        def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
            chunk = {
                **base,
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
            return b"data: " + _bytes(chunk) + b"\n\n"

        parts: list[dict[str, Any]] = [{"content": piece} for piece in _pieces(text)]
        for number, (key, name, value) in enumerate(told):
            head = {"index": number, "id": key, "type": "function", "function": {"name": name, "arguments": ""}}
            parts.append({"tool_calls": [head]})
            for piece in _pieces(json.dumps(value)):
                parts.append({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
        events = [event({"role": "assistant", "content": ""}), *map(event, parts), event({}, why)]
        if (sent.get("stream_options") or {}).get("include_usage"):
            last = {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            events.append(b"data: " + _bytes(last) + b"\n\n")
        events.append(b"data: [DONE]\n\n")
        return _streamed(events, prompt, output, "text/event-stream")

    def _anthropic(self, sent: Mapping[str, Any]) -> Reply:
        system = sent.get("system") or ()
        first = [{"role": "system", "content": system}] if system else []
        asked = _asked([*first, *sent.get("messages", ())])
        tools = {tool["name"]: tool.get("input_schema") for tool in sent.get("tools") or () if "input_schema" in tool}
        choice = sent.get("tool_choice") or {}
        forced = choice.get("name") or ("required" if choice.get("type") == "any" else None)
        text, calls = self._answer(asked, tools, forced, None)
        told = _named(calls, asked)
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        content += [{"type": "tool_use", "id": key, "name": name, "input": value} for key, name, value in told]
        prompt, output = _tokens(asked.prompt), _tokens(text + json.dumps([value for _, _, value in told] or ""))
        why = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": prompt, "output_tokens": output}
        base = {
            "id": f"msg_{_digest(asked.prompt)}",
            "type": "message",
            "role": "assistant",
            "model": sent.get("model"),
        }
        if not sent.get("stream"):
            whole = {**base, "content": content, "stop_reason": why, "stop_sequence": None, "usage": usage}
            return Reply(_takes_s(prompt, output), _bytes(whole))
        begun: dict[str, Any] = {**base, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
        for number, block in enumerate(content):
            empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
            events.append({"type": "content_block_start", "index": number, "content_block": empty})
            for piece in _pieces(block["text"] if block["type"] == "text" else json.dumps(block["input"])):
                kind, key = ("text_delta", "text") if block["type"] == "text" else ("input_json_delta", "partial_json")
                events.append({"type": "content_block_delta", "index": number, "delta": {"type": kind, key: piece}})
            events.append({"type": "content_block_stop", "index": number})
        over = {"stop_reason": why, "stop_sequence": None}
        events += [{"type": "message_delta", "delta": over, "usage": usage}, {"type": "message_stop"}]
        lines = [f"event: {event['type']}\ndata: ".encode() + _bytes(event) + b"\n\n" for event in events]
        return _streamed(lines, prompt, output, "text/event-stream")

    def _ollama(self, sent: Mapping[str, Any]) -> Reply:
        asked = _asked(sent.get("messages", ()))
        tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in sent.get("tools") or ()}
        form = sent.get("format")
        schema = form if isinstance(form, dict) else None
        text, calls = self._answer(asked, tools, None, schema)
        if form == "json" and _json(text.encode()) is None:
            text = json.dumps({"answer": text})
        prompt, output = _tokens(asked.prompt), _tokens(text + json.dumps(calls or ""))
        base = {"model": sent.get("model"), "created_at": "2025-01-01T00:00:00Z"}
        told = [{"function": {"name": name, "arguments": value}} for name, value in calls]
        over = {"done": True, "done_reason": "stop", "prompt_eval_count": prompt, "eval_count": output}
        if not sent.get("stream"):
            message = {"role": "assistant", "content": text, "tool_calls": told}
            return Reply(_takes_s(prompt, output), _bytes({**base, "message": message, **over}))
        lines: list[dict[str, Any]] = [
            {**base, "message": {"role": "assistant", "content": piece}, "done": False} for piece in _pieces(text)
        ]
        if told:
            lines.append({**base, "message": {"role": "assistant", "content": "", "tool_calls": told}, "done": False})
        lines.append({**base, "message": {"role": "assistant", "content": ""}, **over})
        return _streamed([_bytes(line) + b"\n" for line in lines], prompt, output, "application/x-ndjson")

    def _google(self, sent: Mapping[str, Any], streamed: bool) -> Reply:
        def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
            return "\n".join(str(part.get("text") or json.dumps(part)) for part in parts)

        said = sent.get("systemInstruction", {}).get("parts", ())
        turns: list[dict[str, Any]] = [{"role": "system", "content": text_of(said)}] if said else []
        for turn in sent.get("contents", ()):
            called = any("functionCall" in part for part in turn["parts"])
            found = any("functionResponse" in part for part in turn["parts"])
            role = "tool" if found else {"model": "assistant"}.get(turn.get("role", ""), "user")
            turns.append({"role": role, "content": text_of(turn["parts"]), **({"tool_calls": [1]} if called else {})})
        asked = _asked(turns)
        offered = [one for tool in sent.get("tools") or () for one in tool.get("functionDeclarations", ())]
        tools = {one["name"]: one.get("parametersJsonSchema") or _lower(one.get("parameters")) for one in offered}
        settings = sent.get("generationConfig", {})
        schema = settings.get("responseJsonSchema") or _lower(settings.get("responseSchema"))
        mode = (sent.get("toolConfig") or {}).get("functionCallingConfig", {}).get("mode")
        text, calls = self._answer(asked, tools, "required" if mode == "ANY" else None, schema)
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        parts += [{"functionCall": {"name": name, "args": value}} for name, value in calls]
        prompt, output = _tokens(asked.prompt), _tokens(text + json.dumps(calls or ""))
        usage = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        if any("googleSearch" in tool or "google_search" in tool for tool in sent.get("tools") or ()):
            chunk = {"web": {"uri": f"https://example.org/{_digest(asked.prompt)}", "title": "example.org"}}
            segment = {"startIndex": 0, "endIndex": len(text), "text": text}
            support = {"segment": segment, "groundingChunkIndices": [0]}
            candidate["groundingMetadata"] = {"groundingChunks": [chunk], "groundingSupports": [support]}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "model"}
        if not streamed:
            return Reply(_takes_s(prompt, output), _bytes(whole))
        *pieces, last = _pieces(text) or [""]
        events: list[Any] = [_part(piece) for piece in pieces]
        rest = [{"text": last}, *(part for part in parts if "text" not in part)] if last else parts
        events.append({**whole, "candidates": [{**candidate, "content": {"role": "model", "parts": rest}}]})
        sent_as = [b"data: " + _bytes(event) + b"\r\n\r\n" for event in events]
        return _streamed(sent_as, prompt, output, "text/event-stream")

    def _answer(
        self, asked: Asked, tools: Mapping[str, Any], forced: str | None, schema: Any
    ) -> tuple[str, list[tuple[str, Any]]]:
        """Text, and calls of tools with their arguments."""
        if schema is not None:
            return json.dumps(self._filled(schema, asked)), []
        if forced in tools:
            return "", [(str(forced), self._filled(tools[str(forced)], asked))]
        wanted = forced in ("required", "any")
        if tools and forced != "none" and (wanted or asked.rounds < self.manner.rounds):
            names = list(tools)
            if self.manner.tools is not None:
                chosen = list(self.manner.tools(asked, names))
            else:
                chosen = [names[int(asked.dice("tool") * len(names))]]
            if chosen or wanted:
                return "", [
                    (name, self._filled(tools[name], asked, f"{name} {number}"))
                    for number, name in enumerate(chosen or names[:1])
                ]
        for pattern, said in self.manner.says.items():
            if re.search(pattern, asked.prompt):
                return said if isinstance(said, str) else said(asked), []
        return answer(asked.prompt, Sampling(temperature=0.0)), []

    def _filled(self, schema: Any, asked: Asked, salt: str = "") -> Any:
        known = schema or {"type": "object", "properties": {}}
        if salt and known.get("required"):  # a model leaves out what it need not say
            needed = {name: known["properties"][name] for name in known["required"] if name in known["properties"]}
            known = {**known, "properties": needed, "additionalProperties": False}
        constraint = Constraint("json_schema", json.dumps(known))
        value = json.loads(answer(asked.prompt + salt, Sampling(temperature=0.0, constraint=constraint)))
        return self._with_fields(value, asked)

    def _with_fields(self, value: Any, asked: Asked) -> Any:
        if isinstance(value, list):
            return [self._with_fields(item, asked) for item in value]
        if not isinstance(value, dict):
            return value
        told = self.manner.fields
        return {
            key: (told[key](asked) if callable(told[key]) else told[key])
            if key in told
            else self._with_fields(item, asked)
            for key, item in value.items()
        }


# --- what is asked


def _asked_for(host: str, path: str, sent: Any, body: bytes) -> str:
    """Equal for requests that ask the same: one whose answer is to come in pieces asks for no other answer."""
    if isinstance(sent, dict):
        shown = json.dumps({key: value for key, value in sent.items() if key not in ("stream", "stream_options")})
    else:
        shown = body.decode("utf-8", "replace")
    digest = hashlib.blake2b(lasting(shown).encode(), digest_size=8).hexdigest()
    return f"{host}{path.replace(':streamGenerateContent', ':generateContent')} {digest}"


def _asked(messages: Sequence[Any]) -> Asked:
    parts, rounds = [], 0
    for message in messages:
        role, content = message.get("role"), message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
        text = "\n".join(_text(block) for block in blocks)
        if role == "user" and not results:
            rounds = 0
        if message.get("tool_calls"):
            text += json.dumps(message["tool_calls"])
        if message.get("tool_calls") or any(isinstance(b, dict) and b.get("type") == "tool_use" for b in blocks):
            rounds += 1
        shown = {"developer": "system", "model": "assistant", "function": "tool"}.get(str(role), str(role))
        parts.append(f"<|{'tool' if results else shown}|>\n{text}<|end|>\n")
    return Asked(lasting("".join(parts)), rounds)


def _text(block: Any) -> str:
    if not isinstance(block, dict):
        return str(block)
    if block.get("type") == "tool_result":
        content = block.get("content")
        return content if isinstance(content, str) else "\n".join(map(_text, content or ()))
    return str(block["text"]) if "text" in block else json.dumps(block)


def _named(calls: Sequence[tuple[str, Any]], asked: Asked) -> list[tuple[str, str, Any]]:
    return [(f"call_{_digest(asked.prompt)}_{n}", name, value) for n, (name, value) in enumerate(calls)]


def _lower(schema: Any) -> Any:
    """Google writes types in upper case."""
    if isinstance(schema, dict):
        return {key: value.lower() if key == "type" and isinstance(value, str) else _lower(value)
                for key, value in schema.items() if key not in ("nullable", "propertyOrdering", "title")}  # fmt: skip
    return [_lower(item) for item in schema] if isinstance(schema, list) else schema


# --- what is answered


def _takes_s(prompt: int, output: int) -> float:
    return WAITS_S["first token"] + prompt * WAITS_S["prompt token"] + output * WAITS_S["token"]


def _streamed(events: Sequence[bytes], prompt: int, output: int, kind: str) -> Reply:
    each_s = output * WAITS_S["token"] / max(1, len(events))
    return Reply(_takes_s(prompt, 0), b"", kind, [(each_s, event) for event in events])


def _tokens(text: str) -> int:
    return len(_tokenizer.pieces(text))


def _pieces(text: str) -> list[str]:
    pieces = _tokenizer.pieces(text)
    if "".join(pieces) != text:
        return [text]
    return ["".join(pieces[at : at + PIECES]) for at in range(0, len(pieces), PIECES)]


def _embeddings(sent: Mapping[str, Any]) -> Reply:
    given = sent.get("input", "")
    texts = [given] if isinstance(given, str) or (given and isinstance(given[0], int)) else given
    size = sent.get("dimensions") or DIMENSION
    vectors = [[float(x) for x in text_vector(_readable(text), size, 0)] for text in texts]
    packed = sent.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": number,
            "embedding": base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector,
        }
        for number, vector in enumerate(vectors)
    ]
    used = sum(map(len, texts))
    usage = {"prompt_tokens": used, "total_tokens": used}
    return Reply(
        WAITS_S["embedding"], _bytes({"object": "list", "data": data, "model": sent.get("model"), "usage": usage})
    )


def _readable(text: Any) -> str:
    """Some clients send tokens."""
    if isinstance(text, str):
        return text
    import tiktoken

    return tiktoken.get_encoding("cl100k_base").decode(text)


def _search(sent: Mapping[str, Any]) -> Reply:
    query = str(sent.get("query") or sent.get("urls") or "")
    count = min(int(sent.get("max_results") or 5), 5)
    found = [
        {
            "title": f"{_words(f'{query} title {number}', 6)}",
            "url": f"https://example.org/{_digest(query)}/{number}",
            "content": _words(f"{query} content {number}", 60, query),
            "score": round(0.9 - number / 10, 2),
            "raw_content": _words(f"{query} raw {number}", 200, query) if sent.get("include_raw_content") else None,
        }
        for number in range(count)
    ]
    told = {"query": query, "answer": None, "images": [], "results": found, "response_time": 1.0}
    if sent.get("include_answer"):
        told["answer"] = _words(f"{query} answer", 40, query)
    return Reply(WAITS_S["search"], _bytes(told))


def _encyclopedia(asked: Mapping[str, list[str]]) -> Reply:
    """What Wikipedia's interface answers to a search, and to what it asks of a page."""
    if "srsearch" in asked:
        titles = [_words(f"{asked['srsearch'][0]} {number}", 3) for number in range(3)]
        told: dict[str, Any] = {"search": [{"title": title} for title in titles]}
    else:
        title = (asked.get("titles") or asked.get("pageids") or ["page"])[0]
        page = {"pageid": 1, "title": title, "fullurl": f"https://en.wikipedia.org/{_digest(title)}", "extract": ""}
        page |= {"extract": _words(title, 150), "revisions": [{"revid": 1, "parentid": 0}]}
        told = {"pages": {"1": page}}
    return Reply(WAITS_S["page"], _bytes({"query": told}))


def _page(url: str) -> Reply:
    text = "".join(f"<p>{escape(_words(f'{url} {number}', 80))}</p>" for number in range(12))
    html = f"<html><head><title>{escape(url)}</title></head><body><h1>{escape(url)}</h1>{text}</body></html>"
    return Reply(WAITS_S["page"], html.encode(), "text/html; charset=utf-8")


def _words(seed: str, count: int, about: str = "") -> str:
    """Text about a thing; another one for another seed."""
    asked = f"Write about {count} words on this.\nTopic: {about or seed}\nNo. {_digest(seed)}"
    return answer(asked, Sampling(temperature=0.0))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _part(text: str) -> dict[str, Any]:
    """A piece of Google's answer, as it is streamed."""
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}],
        "modelVersion": "model",
    }


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
