"""Every error a user of Accel can meet, each saying what happened and what to do about it."""


class AccelError(Exception):
    """Base of all errors raised by Accel. `what` is the fact, `remedy` the way out ("" where there is none)."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what, remedy)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}\n  Remedy: {self.remedy}" if self.remedy else self.what


class ConfigurationError(AccelError):
    """An option that is unknown, out of range or contradicts another one."""


class MissingExtra(AccelError):
    """A part of Accel whose dependencies are not installed."""

    def __init__(self, needed_for: str, extra: str, missing: str = "") -> None:
        named = f" (no module named {missing!r})" if missing else ""
        super().__init__(
            f"{needed_for} needs packages that are not installed{named}.", f"pip install 'accelgraph[{extra}]'"
        )
        self.extra = extra


class ModelNotFound(AccelError):
    """A model name that is neither a folder nor a model in the cache."""


class EngineStartError(AccelError):
    """An engine could not be started; nothing of it is left running."""


class NotEnoughMemory(EngineStartError):
    """The machine, or the configured KV cache, is too small for the engine."""


class DatabaseError(AccelError):
    """A database that cannot be reached, or lacks something we need. Never contains a password."""


class EngineClosed(AccelError):
    """A call reached an engine after it was shut down."""


class RequestError(AccelError):
    """One request failed; others on the same engine are not affected."""


class InvalidRequest(RequestError):
    """A request that can never succeed as it is: empty or too long a prompt, a broken schema, a wrong dimension."""


class CallCancelled(AccelError):
    """The call was aborted through its `accel.engine.CancelToken`; the engine stopped working on it."""

    def __init__(self, what: str = "The call was cancelled.") -> None:
        super().__init__(what)
