"""The field `engine` of the drop-in classes: the config of another engine than the class's own."""

from typing import Annotated, Any

from pydantic import AfterValidator, PlainSerializer


def _checked(config: Any) -> Any:
    if config is not None and not callable(getattr(config, "create", None)):
        raise ValueError(f"engine is the config of an engine (accel.engine.EngineConfig), not {config!r}")
    return config


EngineField = Annotated[Any, AfterValidator(_checked), PlainSerializer(repr, when_used="unless-none")]
"""Written as text, because ingestion caches tell embedding models apart by what `to_dict()` says."""
