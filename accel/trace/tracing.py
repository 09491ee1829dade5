"""What of a run's context says where a trace belongs, and nothing about the run: spans, and contexts that hold them.

Told by the names of modules: none of the libraries need be there.
"""

from __future__ import annotations

from typing import Any

MODULES = ("opentelemetry.trace", "opentelemetry.sdk.", "langsmith.", "langfuse.", "ddtrace.", "sentry_sdk.")
_CONTEXTS = "opentelemetry.context"


def is_of_a_trace(value: Any) -> bool:
    """Whether it is OpenTelemetry's context with spans alone: baggage in it may be a tenant's."""
    cls = type(value)
    if not (issubclass(cls, dict) and cls.__module__.startswith(_CONTEXTS)):
        return False
    return all(type(part).__module__.startswith(MODULES) for part in dict.values(value))
