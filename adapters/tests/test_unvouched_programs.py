"""A program whose components nobody vouches for is recorded and learnt from, and not followed until somebody does."""

from __future__ import annotations

import accel
from accel import accelerate
from accel.parts.components import declarations

from .core_fakes import Chat, UnknownChat, World, three, train

TOPICS = tuple(f"{kind} of {place}" for kind in ("lakes", "tides") for place in ("Norway", "Chile", "Japan"))


class OwnChat(UnknownChat):
    """Declared by the test, once."""


def test_it_is_recorded_only_and_followed_as_soon_as_somebody_vouches_for_it() -> None:
    world = World()
    graph = three(world, OwnChat(world))
    fast = accelerate(graph)
    train(fast, TOPICS[:4])
    assert fast.plan.mute == declarations()
    followed = fast.plan.reasons
    assert len(followed) == 3 and "nobody vouches for it" in " ".join(map(str, followed.values()))
    world.forget()
    train(fast, TOPICS[4:5])
    assert fast.plan.runs == 5 and fast.plan.last is not None and len(fast.plan.last.calls) == 3
    assert "nobody vouches for it" in str(fast.report())
    assert fast.plan.reasons == followed

    accel.register(OwnChat, pure=True, local=True, concurrency=8)
    world.forget()
    fast.plan.pace.news()  # it rests, too
    assert fast.invoke({"q": TOPICS[5]}) == graph.invoke({"q": TOPICS[5]})
    assert f"Beta asks: {TOPICS[5]}" in world.texts(early=True)
    assert accel.settle()
    assert fast.plan.mute == -1


def test_one_with_a_component_that_somebody_vouches_for_is_followed() -> None:
    world = World()
    fast = accelerate(three(world, UnknownChat(world), other=Chat(world)))
    train(fast, TOPICS[:4])
    assert fast.plan.mute == -1
    world.forget()
    train(fast, TOPICS[4:5])
    assert world.texts(early=True) == [f"Beta asks: {TOPICS[4]}"]
