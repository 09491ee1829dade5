"""Which components a program refers to, and which it chooses from."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from accel.parts.references import LOOKED_AGAIN, References, Ways, referenced
from accel.parts.together import ENOUGH
from accel.run.plans.plan import Plan
from accel.trace.record import Trace


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


def keep(store: Store) -> Any:
    """A function with a store of its own."""
    return lambda: store


@pytest.mark.parametrize(
    "kept", [SimpleNamespace, keep, lambda store: ("", store), lambda store: {"store": store}, lambda store: [store]]
)
def test_what_an_entry_leads_to_is_the_program_s_choice_as_well(kept: Any) -> None:
    """A context, a handler or a set of tools for every tenant."""
    tenants = {"a": kept(store=ONE), "b": kept(store=TWO)}
    assert not refers(lambda: tenants, ONE) and not refers(lambda: tenants, TWO)


def test_entries_that_lead_to_one_component_are_no_choice() -> None:
    tenants = {"a": SimpleNamespace(store=ONE, other=Other()), "b": SimpleNamespace(store=ONE)}
    assert refers(lambda: tenants, ONE) and refers(lambda: tenants, tenants["a"].other)


def test_where_every_run_uses_all_there_is_nothing_to_choose() -> None:
    stores, ways = [Store(), Store()], Ways()
    root = SimpleNamespace(stores=stores)

    def look() -> References:
        return References([root], lambda value: isinstance(value, Store), ways=ways)

    for _ in range(ENOUGH):
        assert not look()(stores[0])
        look().ran(stores)
    assert look()(stores[0]) and look()(stores[1])
    stores.append(Store())
    assert not look()(stores[0]), "nobody has used the new one"
    stores.pop()
    look().ran(stores[:1])
    assert not look()(stores[0]) and not look()(stores[1]), "a run did without one"


def test_an_entry_is_used_if_something_of_it_is() -> None:
    """An index has a store of images as well, which no run asks."""

    class Index:
        def __init__(self) -> None:
            self.texts, self.images = Store(), Store()

    indices = {"a": Index(), "b": Index(), "c": Index()}

    def after(*used: Store) -> References:
        """Runs that used these, often enough."""
        ways = Ways()
        for _ in range(ENOUGH):
            References(ways=ways).ran(used)
        return References([lambda: indices], lambda value: isinstance(value, Store), ways=ways)

    used = [index.texts for index in indices.values()]
    assert all(map(after(*used), used)) and not after(*used)(indices["a"].images)
    assert not any(map(after(*used[:2]), used)), "nothing of the third one was ever used"


def test_what_a_container_leads_to_is_looked_at_once_for_all_of_it() -> None:
    """A store for each of a thousand tenants."""
    tenants = {number: SimpleNamespace(store=Store()) for number in range(1_000)}
    found = referenced([SimpleNamespace(tenants=tenants)], lambda value: isinstance(value, Store), lambda value: False)
    choices = [one.choice for one in found.values()]
    assert len(choices) == 1_000 and len({id(choice and choice.among[0]) for choice in choices}) == 1
    assert choices[0] is not None and len(choices[0].among) == 1 and len(choices[0].among[0].entries) == 1_000


def test_what_is_called_by_its_name_is_no_choice_of_the_program() -> None:
    class Tool:
        def __init__(self, name: str) -> None:
            self.name = name

    first, second, third = Tool("first"), Tool("second"), Tool("first")
    tools, ways = {"first": first, "second": second}, Ways()

    def refers(tool: Tool, *called: str) -> bool:
        return References([lambda: tools], lambda value: isinstance(value, Tool), ways=ways)(tool, "", {*called})

    assert refers(first, "first") and refers(first, "first") and not refers(first) and not refers(first, "second")
    tools["third"] = third
    assert not refers(first, "first"), "another one has that name"
    tools.clear()
    tools |= {"a": {"first": first}, "b": {"first": third}}
    assert not refers(first, "first") and not refers(third, "first")


def test_what_accel_has_recorded_is_no_reference() -> None:
    """A program may hold its own accelerated graph: that one knows what every earlier run has used."""
    plan = Plan()
    plan.last = Trace()
    plan.last.calls.append(ONE)  # type: ignore[arg-type]
    assert not refers(lambda: plan, ONE)


def test_what_libraries_build_for_themselves_uses_up_no_look() -> None:
    """A chat's memory in a database holds thousands of a library's tables of listeners."""
    records = type("Record", (), {"__module__": "sqlalchemy.orm", "__init__": Framework.__init__})
    tables = [records(inner=[records() for _ in range(20)]) for _ in range(300)]
    assert refers(SimpleNamespace(tables=tables, inner=SimpleNamespace(store=ONE)), ONE)
    assert not refers(records(store=ONE), ONE)


class Slotted:
    __slots__ = ("__weakref__", "store", "unset")


def test_slots_that_are_set_are_looked_into() -> None:
    slotted = Slotted()
    slotted.store = ONE
    assert refers(slotted, ONE) and not refers(Slotted(), ONE)


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


def test_a_way_that_was_gone_before_is_gone_again_and_no_further() -> None:
    """From run to run the whole program is looked at only if the way leads there no more."""
    looked: list[Any] = []

    def is_component(value: Any) -> bool:
        looked.append(value)
        return isinstance(value, Store)

    class Holder:
        store: Any = None

    class Large:
        parts: Any = None

    holder, large, ways = Holder(), Large(), Ways()
    holder.store, large.parts = Store(), [Large() for _ in range(500)]
    root = [holder, large]

    def refers(component: Any) -> bool:
        looked.clear()
        return References([root], is_component, ways=ways)(component)

    first, second = holder.store, Store()
    assert refers(first) and len(looked) > 500
    assert refers(first) and len(looked) < 20
    holder.store = second
    assert not refers(first), "the program has let go of it"
    assert refers(second)
    assert refers(second) and len(looked) < 20


def test_what_was_not_found_is_looked_for_again_but_not_in_every_run() -> None:
    class Holder:
        store: Any = None

    holder, ways, store = Holder(), Ways(), Store()

    def refers() -> bool:
        return References([holder], lambda value: isinstance(value, Store), ways=ways)(store)

    assert not refers()
    holder.store = store
    assert [refers() for _ in range(LOOKED_AGAIN + 1)] == [False] * LOOKED_AGAIN + [True]


def test_of_components_that_a_site_makes_anew_the_next_one_is_not_looked_for() -> None:
    looks: list[Any] = []

    def is_store(value: Any) -> bool:
        looks.append(value)
        return isinstance(value, Store)

    ways = Ways()
    refers = [References([ONE], is_store, ways=ways)(Store(), "site") for _ in range(LOOKED_AGAIN)]
    once = len(looks)
    assert not any(refers) and once <= 2
    assert References([ONE], is_store, ways=ways)(ONE, "other site"), "which site makes them is told apart"


def test_a_component_that_only_a_way_leads_to_is_not_kept_alive() -> None:
    class Holder:
        store: Any = None

    holder, ways = Holder(), Ways()
    holder.store = Store()
    assert References([holder], lambda value: isinstance(value, Store), ways=ways)(holder.store)
    gone = weakref.ref(holder.store)
    holder.store = None
    gc.collect()
    assert gone() is None


def test_components_that_a_program_chooses_from_are_not_kept_alive() -> None:
    stores, ways = [Store(), Store()], Ways()
    references = References([lambda: stores], lambda value: isinstance(value, Store), ways=ways)
    references.ran(stores)
    assert not references(stores[0])
    del references
    gone = weakref.ref(stores[0])
    stores.clear()
    gc.collect()
    assert gone() is None
