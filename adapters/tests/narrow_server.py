"""A model server that speaks OpenAI's protocol and answers 429 to more than so many calls at a time."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TAKES_S = 0.04
"""An answer: what makes an early call worth while."""
ITEMS = 5


class NarrowServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, takes: int) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.takes = takes
        self.lock = threading.Lock()
        self.inside = 0
        self.answered = 0
        self.refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that does not wait for its answer."""


@contextmanager
def narrow_server(takes: int) -> Iterator[NarrowServer]:
    with NarrowServer(takes) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def reply(prompt: str) -> str:
    """A numbered list where one is asked for."""
    about = prompt.rpartition(": ")[2]
    if prompt.startswith("List"):
        return "\n".join(f"{number}. part {number} of {about}" for number in range(1, ITEMS + 1))
    return f"What there is to say of {about}."


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536
    server: NarrowServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            server.inside += 1
            full = server.inside > server.takes
            server.refused += full
            server.answered += not full
        try:
            if full:
                found = json.dumps({"error": {"message": "too many", "type": "rate_limit"}})
            else:
                time.sleep(TAKES_S)
                text = reply(str(body["messages"][-1]["content"]))
                found = _streamed(text) if body.get("stream") else _whole(text)
        finally:
            with server.lock:
                server.inside -= 1
        data = found.encode()
        self.send_response(429 if full else 200)
        streams = bool(body.get("stream")) and not full
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


_BASE = {"id": "x", "created": 1, "model": "m"}


def _whole(text: str) -> str:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return json.dumps({**_BASE, "object": "chat.completion", "choices": [choice], "usage": usage})


def _streamed(text: str) -> str:
    pieces = re.findall(r"\s*\S+", text)
    chunks: list[Any] = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    made = [json.dumps({**_BASE, "object": "chat.completion.chunk", "choices": [chunk]}) for chunk in chunks]
    return "".join(f"data: {line}\n\n" for line in [*made, "[DONE]"])
