"""What comes in beside a run's input, taken apart into values that are compared one by one."""

from __future__ import annotations

import dataclasses
import gc
import threading
from contextvars import ContextVar, copy_context
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from accel.trace.ambient import MAX_DIMENSIONS, SECRET, data_of, dimensions, unchanged, user_vars

VAR: ContextVar[Any] = ContextVar("test_ambient_var")
SAME_NAME: ContextVar[Any] = ContextVar("test_ambient_var")


@dataclasses.dataclass
class User:
    tenant: str
    roles: list[str] = dataclasses.field(default_factory=list)


class Person(BaseModel):
    tenant: str
    key: SecretStr = SecretStr("k")


class Request:
    """Nobody's base class, with a lock and whatever else."""

    def __init__(self, number: int, user: Any) -> None:
        self.id, self.user, self.lock = number, user, threading.Lock()


class Slotted:
    __slots__ = ("tenant",)

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant


def told(value: Any) -> dict[str, str]:
    return dimensions({}, {"configurable": {"x": value}})


def differing(left: Any, right: Any) -> set[str]:
    one, other = told(left), told(right)
    return {
        name.removeprefix("configurable.x") for name in one.keys() | other.keys() if one.get(name) != other.get(name)
    }


@pytest.mark.parametrize(
    ("left", "right", "where"),
    [
        ("ann", "ben", {""}),
        (1, True, {""}),
        (User("ann"), User("ann"), set()),
        (User("ann"), User("ben"), {".tenant"}),
        (User("ann", ["a"]), User("ann", ["a", "b"]), {".roles.1"}),
        (Person(tenant="ann"), Person(tenant="ben"), {".tenant"}),
        (Person(tenant="ann"), Person(tenant="ann", key=SecretStr("other")), {".key"}),
        (Request(1, User("ann")), Request(2, User("ann")), {".id"}),
        (Request(1, User("ann")), Request(2, User("ben")), {".id", ".user.tenant"}),
        (Slotted("ann"), Slotted("ben"), {".tenant"}),
        ({"a": {"tenant": "ann"}}, {"a": {"tenant": "ben"}}, {".a.tenant"}),
        ({"tenant:ann", "request:1"}, {"tenant:ann", "request:2"}, {" request"}),
        ({"ann"}, {"ben"}, {" ann", " ben"}),
        (None, "ann", {""}),
        (threading.Lock(), threading.Lock(), set()),
        ({"current-span-0c9b2a4e-5f0c-4d7a-9b57-1b6c2d3e4f50": "x"},
         {"current-span-1c9b2a4e-5f0c-4d7a-9b57-1b6c2d3e4f51": "x"}, set()),
    ],
)  # fmt: skip
def test_objects_are_taken_apart_into_their_fields(left: Any, right: Any, where: set[str]) -> None:
    assert differing(left, right) == where


def test_what_cannot_be_compared_by_value_equals_itself_alone_and_proves_nothing() -> None:
    first, second = object(), object()
    assert differing(first, second) == {""}

    class Empty:
        pass

    one, other = Empty(), Empty()
    assert differing(one, one) == set() and differing(one, other) == {""}
    assert all(told(value)["configurable.x"].startswith("~") for value in (first, one, lambda: None))


def test_an_object_that_is_gone_is_not_taken_for_another() -> None:
    class Empty:
        pass

    seen = set()
    for _ in range(10):
        value = Empty()
        seen.add(told(value)["configurable.x"])
        del value
        gc.collect()
    assert len(seen) == 10


def test_plain_data_that_is_too_much_to_be_taken_apart_is_equal_to_equal_data_and_proves_nothing() -> None:
    names = [str(number) for number in range(100)]
    assert differing(names, list(names)) == set()
    assert told(names)["configurable.x"].startswith("~")


def test_more_dimensions_than_are_kept_equal_nothing() -> None:
    many = {str(number): number for number in range(MAX_DIMENSIONS + 10)}
    assert differing(many, dict(many)) != set()


def test_two_variables_of_one_name_are_two() -> None:
    context = copy_context()
    context.run(VAR.set, "request")
    context.run(SAME_NAME.set, "tenant")
    found = dimensions(user_vars(context), {})
    assert {"ContextVar test_ambient_var", "ContextVar test_ambient_var (2)"} <= found.keys()


def test_a_secret_can_be_told_from_outside_this_process_by_nothing() -> None:
    assert told(Person(tenant="ann"))["configurable.x.key"].startswith(SECRET)
    assert told({"api_key": "k"})["configurable.x.api_key"].startswith(SECRET)


def test_what_changes_in_a_variable_s_object_between_issue_and_demand_counts() -> None:
    request = Request(1, User("ann"))
    context = copy_context()
    context.run(VAR.set, request)
    before = (user_vars(context), None)
    assert unchanged(before, (user_vars(context), None))
    request.user.tenant = "ben"
    assert not unchanged(before, (user_vars(context), None))


def test_no_code_of_the_user_s_is_run() -> None:
    class Careful:
        def __init__(self) -> None:
            self.tenant = "ann"

        @property
        def boom(self) -> str:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

        def __repr__(self) -> str:
            raise AssertionError

    assert "configurable.x.tenant" in told(Careful())


def test_the_order_of_a_configuration_tells_nothing() -> None:
    assert data_of({"a": 1, "b": {"c": 2, "d": 3}}) == data_of({"b": {"d": 3, "c": 2}, "a": 1})
    assert data_of({"a": 1}) != data_of({"a": True})
