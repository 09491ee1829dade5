"""Runs something in a forked child, as pre-fork servers do, and gives what the child says of it."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable

FORKED_S = 60.0
HANGS = "hangs in a forked child"


def in_child(call: Callable[[], str], lock: threading.Lock) -> str:
    """What `call` returns in a child of this process; `HANGS` if that takes long. `lock`: what no other thread shall
    hold when the child begins."""
    reads, writes = os.pipe()
    with lock:
        child = os.fork()
    if child == 0:
        try:
            said = call()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            said = f"raises in a forked child: {error!r}"
        with open(writes, "w") as pipe:
            pipe.write(said)
        os._exit(0)
    os.close(writes)
    parts: list[bytes] = []
    with open(reads, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], FORKED_S)[0]:
            part = pipe.read(65536)
            if not part:
                break
            parts.append(part)
        else:
            parts = [HANGS.encode()]
            os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return b"".join(parts).decode()
