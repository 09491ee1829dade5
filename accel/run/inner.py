"""Asynchronous streams inside ours: ours closes them.

An event loop that ends closes all streams that it has seen begin, at once. One that is being closed by another one at
that moment would be an error, in a place where programs have none.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable
from typing import Any


def step(stream: AsyncIterator[Any], end: Any) -> Awaitable[Any]:
    """The next part of an inner stream, `end` after the last one. The loop does not see it begin."""
    before = sys.get_asyncgen_hooks().firstiter
    sys.set_asyncgen_hooks(firstiter=None)
    try:
        return anext(stream, end)
    finally:
        sys.set_asyncgen_hooks(firstiter=before)
