"""Invariant 3 with values that can't be looked through: the program sees nothing of it, and nobody looks on and on."""

from __future__ import annotations

import contextvars
from contextvars import ContextVar
from typing import Any

from accel import accelerate
from adapters.tests.core_fakes import Chat, World, after_thinking

VAULT: ContextVar[Any] = ContextVar("invariants_context_values")


class Vault:
    """Of a secret that is not there yet."""

    def __init__(self) -> None:
        self.asked = 0

    def get_secret_value(self) -> str:
        self.asked += 1
        raise PermissionError


def test_a_run_whose_context_equals_nothing_is_the_program_s_own_and_is_looked_at_no_more() -> None:
    world = World()
    model = Chat(world)
    beta, gamma = ((lambda state, by=by: model.invoke(f"{by}: {state['q']}").content) for by in ("Beta", "Gamma"))
    program = after_thinking(world, beta, gamma)
    fast = accelerate(program)
    expected = program.invoke({"q": "volcanoes"})
    vault = Vault()

    def run() -> Any:
        VAULT.set(vault)
        return fast.invoke({"q": "volcanoes"})

    asked = []
    for _ in range(4):
        world.calls.clear()
        assert contextvars.copy_context().run(run) == expected
        assert len(world.calls) == 3 and not any(call.early for call in world.calls)
        asked.append(vault.asked)
    at_begin = asked[0]
    assert asked == [at_begin * runs for runs in (1, 2, 3, 4)] and at_begin == 3
