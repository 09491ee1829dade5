"""Values of any class in a ContextVar: nothing of theirs is run, nothing they raise gets out, nothing goes unseen."""

from __future__ import annotations

import collections
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from accel.learn.contexts.seen_in import MAX_DIMENSIONS, SeenIn
from accel.trace import ambient
from accel.trace.ambient import INCOMPARABLE, MAX_BULK, MAX_HELD, at_begin, data_of, dimensions, held, unchanged

VAR: ContextVar[Any] = ContextVar("test_ambient_values")


def told(value: Any) -> dict[str, str]:
    return dimensions({}, {"x": value})


class StandsFor:
    """As Django's lazy objects and Werkzeug's proxies: whoever asks what it is loads what it stands for."""

    def __init__(self) -> None:
        self.tenant = "ann"

    def _load(self) -> Any:
        raise AssertionError("loaded")

    __class__ = property(_load)  # type: ignore[assignment]
    __dict__ = property(_load)  # type: ignore[assignment]


class Locked:
    def get_secret_value(self) -> str:
        raise PermissionError


def holding_itself() -> list[Any]:
    found: list[Any] = [0] * 40
    found.append(found)
    return found


ODD: dict[str, Callable[[], Any]] = {
    "stands for another": StandsFor,
    "in a list": lambda: [StandsFor()],
    "in a dict": lambda: {"user": StandsFor()},
    "holds itself": holding_itself,
    "very long number": lambda: [10**5000],
    "very long numbers": lambda: [10**5000] * 40,
    "very long key": lambda: {10**5000: 1},
    "no unicode": lambda: "\udc80",
    "secret, no unicode": lambda: {"api_key": "\udc80"},
    "key, no unicode": lambda: {"\udc80": 1},
    "tag, no unicode": lambda: {"\udc80"},
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD.keys())
def test_an_odd_value_is_compared_like_any_other(make: Callable[[], Any]) -> None:
    value = make()
    first, second = [held(value), told(value)], [held(value), told(value)]
    assert first == second and first[1]
    SeenIn().note(first[1])


def test_what_stands_for_another_object_is_looked_through_itself() -> None:
    class Proxy:
        __slots__ = ("wrapped",)

        @property
        def __class__(self) -> Any:
            raise AssertionError

        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise AssertionError

    one = Proxy()
    one.wrapped = "ann"
    before = held(one)
    one.wrapped = "ben"
    assert held(one) != before


@pytest.mark.parametrize(
    "value", [Locked(), {"a": [Locked()]}, list(range(MAX_BULK + 1)), {str(key): 1 for key in range(MAX_HELD + 1)}],
    ids=["raises", "raises within", "long list", "large dict"],
)  # fmt: skip
def test_what_cannot_be_looked_through_equals_nothing(value: Any) -> None:
    assert held(value) != held(value)
    assert told(value) != told(value)


def test_a_context_that_does_not_equal_itself_is_looked_at_no_more() -> None:
    context = copy_context()
    context.run(VAR.set, Locked())
    variables, begun = at_begin(context, lambda: None)
    assert begun is INCOMPARABLE and not unchanged(begun, begun)
    assert dimensions(variables, {}) != dimensions(variables, {})
    context.run(VAR.set, "ann")
    assert at_begin(context, lambda: None)[1] is not INCOMPARABLE


CONTAINERS: list[Any] = [{1, 2}, {("a", 1)}, collections.deque(["a"]), bytearray(b"a"), bytearray(b"a" * 5000),
                         set(range(100)), {str(number) for number in range(100)}]  # fmt: skip


@pytest.mark.parametrize("value", CONTAINERS)
def test_containers_are_compared_by_what_is_in_them(value: Any) -> None:
    assert told(value) == told(value.copy())
    before, told_before = held(value), told(value)
    changed = getattr(value, "add", None) or value.append
    changed(200)
    assert held(value) != before and told(value) != told_before


def test_the_order_of_a_set_tells_nothing() -> None:
    left, right = {0, 8}, {8, 0}
    assert [*left] != [*right]
    assert told(left) == told(right) and data_of(left) == data_of(right)


def test_long_texts_are_not_written_out_to_be_compared() -> None:
    long = "a" * 1_000_000
    ((_, leaf),) = data_of([long])[1:]  # type: ignore[index]
    assert leaf[-1] is long
    assert told([long]) == told(["a" * 1_000_000]) != told([long + "b"])
    assert told([long.encode()]) != told([long])


def test_two_keys_of_one_name_are_both_seen() -> None:
    value = {"1": "ann", 1: "x"}
    before = held(value), told(value)
    value["1"] = "ben"
    assert held(value) != before[0] and told(value) != before[1]


def test_variables_of_one_name_are_told_apart_without_end_but_not_kept() -> None:
    kept = [ContextVar[Any]("many of one name") for _ in range(1_000)]
    names = [next(iter(dimensions({var: (str, "a")}, {}))) for var in kept]
    assert len(set(names)) == len(kept)
    assert len(ambient._numbers["many of one name"]) <= ambient.MAX_SAME_NAME


def test_what_was_seen_in_ever_new_dimensions_stays_bounded_and_serves_nobody() -> None:
    found = SeenIn()
    for number in range(3 * MAX_DIMENSIONS):
        found.note({f"request {number}": "=True"})
    assert len(found.values) <= MAX_DIMENSIONS + 1
    assert found.differs_in({}, exactly=False) is not None
    assert found.differs_in({"request 1": "=True"}, exactly=False) is not None


# --- requests of web frameworks -------------------------------------------------------------------------------------


def scope_of(app: Any, tenant: str) -> dict[str, Any]:
    return {
        "type": "http", "asgi": {"version": "3.0"}, "app": app, "router": app.router, "route": object(),
        "path": "/ask", "query_string": b"q=1", "headers": [(b"x-tenant", tenant.encode())], "state": {"user": tenant},
    }  # fmt: skip


def test_requests_of_starlette_differ_in_their_data_alone() -> None:
    requests, applications = pytest.importorskip("starlette.requests"), pytest.importorskip("starlette.applications")
    app = applications.Starlette()

    def request(tenant: str) -> Any:
        async def receive() -> Any: ...

        return requests.Request(scope_of(app, tenant), receive)

    ann = request("ann")
    assert told(ann) == told(request("ann"))
    before = held(ann)
    assert ann.headers["x-tenant"] == "ann"  # kept by the request from now on
    assert held(ann) == before
    other = told(request("ben"))
    differing = {name for name, value in told(ann).items() if other[name] != value}
    assert differing == {"x.scope.headers.0.1", "x.scope.state.user"}


def test_contexts_of_flask_differ_in_their_data_alone() -> None:
    class Flask:
        def __init__(self) -> None:
            self.url_map = {str(number): object() for number in range(500)}

    class RequestContext:
        def __init__(self, app: Any, tenant: str) -> None:
            self.app, self.session, self._cv_tokens = app, {"tenant": tenant}, [object()]
            self.request = {"wsgi.version": (1, 0), "wsgi.input": object(), "HTTP_X_TENANT": tenant}
            self.request |= {"wsgi.early_hints": lambda: tenant, "gunicorn.socket": object(), "wsgi.url_scheme": "http"}

    Flask.__module__, Flask.__qualname__ = "flask.app", "Flask"
    RequestContext.__module__, RequestContext.__qualname__ = "flask.ctx", "RequestContext"

    class Mine(Flask):
        pass

    app = Mine()
    ann, again, ben = (told(RequestContext(app, tenant)) for tenant in ("ann", "ann", "ben"))
    assert ann == again
    assert {name for name in ann if ann[name] != ben[name]} == {"x.session.tenant", "x.request.HTTP_X_TENANT"}
    assert told(RequestContext(Mine(), "ann")) != ann
