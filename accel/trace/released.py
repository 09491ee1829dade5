"""Calls of a run that is not the last one any more: they keep no component alive. Programs that make a client for each
request would have as many connections open as runs are kept to learn from."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import ref

from .record import CallRecord

_component = CallRecord.__dict__["component"]


class Released(CallRecord):
    """Its component is None once the program has let go of it, too."""

    __slots__ = ()

    @property
    def component(self) -> Any:
        held = _component.__get__(self)
        return held() if type(held) is ref else held

    @component.setter
    def component(self, component: Any) -> None:  # of a copy
        _component.__set__(self, component)


def release(call: CallRecord, first: object) -> None:
    """`first`: what its component does first, which is asked for as long as the call is known."""
    if type(_component.__get__(call)) is ref:
        return
    with suppress(TypeError):  # no weak references
        held = ref(call.component)
        call.first = first
        call.__class__ = Released  # first: somebody may be looking at it
        _component.__set__(call, held)
