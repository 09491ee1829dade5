"""A pytest plugin for LangGraph's own tests: garbage is collected between tests only.

Some of them abandon streams. On CPython 3.11 a stream that is collected while a thread is only just starting waits for
its own threads with a lock held that those need (`threading._maintain_shutdown_locks`): the process hangs, also with
nothing accelerated.
"""

import gc

EVERY = 50

_tests = 0


def pytest_runtest_logstart() -> None:
    gc.disable()  # each time: some tests enable it


def pytest_runtest_logfinish() -> None:
    global _tests
    _tests += 1
    if _tests % EVERY == 0:
        gc.collect()
