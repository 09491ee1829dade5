"""Which components a program refers to, and which it chooses from."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from accel.learn.plan import Plan
from accel.record import Trace
from accel.references import References


class Store:
    pass


class Other:
    pass


def refers(root: Any, component: Any) -> bool:
    return References([root], lambda value: isinstance(value, Store | Other), lambda value: False)(component)


ONE, TWO = Store(), Store()


@pytest.mark.parametrize("container", [{"a": ONE, "b": TWO}, [ONE, TWO], (ONE, TWO), [{"a": ONE, "b": TWO}]])
def test_one_of_several_is_the_program_s_choice(container: Any) -> None:
    assert not refers(lambda: container, ONE) and not refers(SimpleNamespace(stores=container), TWO)


@pytest.mark.parametrize("container", [{"a": ONE}, [ONE, ONE], (ONE, Other()), {"a": ONE, "b": [1, 2]}])
def test_the_only_one_of_its_class_is_no_choice(container: Any) -> None:
    assert refers(lambda: container, ONE)


def test_what_is_named_beside_the_container_is_no_choice() -> None:
    named, container = ONE, {"a": ONE, "b": TWO}
    assert refers(lambda: (container, named), ONE) and not refers(lambda: (container, named), TWO)
    assert refers(SimpleNamespace(inner=SimpleNamespace(store=ONE), all=[ONE, TWO]), ONE)


@pytest.mark.parametrize("log", [[ONE], {"last": ONE}, deque([ONE])])
def test_a_list_of_the_last_one_used_names_it_not(log: Any) -> None:
    container = {"a": ONE, "b": TWO}
    assert not refers(lambda: (log, container), ONE) and not refers(SimpleNamespace(log=log, stores=container), ONE)


def test_what_accel_has_recorded_is_no_reference() -> None:
    """A program may hold its own accelerated graph: that one knows what every earlier run has used."""
    plan = Plan()
    plan.last = Trace()
    plan.last.calls.append(ONE)  # type: ignore[arg-type]
    assert not refers(lambda: plan, ONE)


class Framework:
    def __init__(self, **parts: Any) -> None:
        self.__dict__.update(parts)


def test_what_a_framework_holds_it_uses_and_what_a_program_s_function_holds_is_its_choice() -> None:
    def opened(root: Any) -> bool:
        look = References([root], lambda v: isinstance(v, Store), lambda v: isinstance(v, Framework))
        return look(ONE)

    container = {"a": ONE, "b": TWO}
    assert opened(Framework(retrievers=[ONE, TWO]))
    assert not opened(Framework(function=lambda: container))


def test_what_is_not_there() -> None:
    assert not refers(lambda: None, ONE)


def test_tables_of_words_are_not_looked_through() -> None:
    """A tokenizer is in the way of a component: neither its size nor its words cost anything."""
    asked = 0

    def is_component(value: object) -> bool:
        nonlocal asked
        asked += 1
        return isinstance(value, Store)

    class Tokenizer:
        def __init__(self) -> None:
            self.ranks = {f"word {number}": number for number in range(50_000)}
            self.words = [f"word {number}" for number in range(50_000)]
            self.pieces = [("a", "b") for _ in range(50_000)]
            self.component = Store()

    tokenizer = Tokenizer()
    assert References([lambda: tokenizer], is_component)(tokenizer.component)
    assert asked < 10_000
