"""The model server and the application server, in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from examples.serving.processes import Process, model_server, uvicorn_command


@contextmanager
def both() -> Iterator[tuple[Process, Process]]:
    """The model server and the application server."""
    model = model_server()
    try:
        application = Process(
            uvicorn_command("compat_tests.server.rag_server:create_app"), {"MODEL_URL": f"{model.url}/v1"}
        )
        try:
            yield model, application
        finally:
            application.kill()
    finally:
        model.kill()
