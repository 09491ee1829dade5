"""What is known about components: state in their code, facts, endpoints, identity."""

from __future__ import annotations

import functools
import gc
import ssl
import threading
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

import accel
from accel.errors import AccelError
from accel.parts import components
from accel.parts.components import Facts, agreed, facts_of, said_of
from accel.parts.identities import identity as identities_of
from accel.parts.identities.identity import Identities, identity_of
from accel.parts.methods.methods import METHODS, Method
from accel.parts.network.recipients import endpoint_of, has_private_endpoint
from accel.parts.references import References

for leaf in ("_generate", "_stream"):
    declared = Method(leaf, "test", "decode", "sync", lambda *call: None, lambda *call: ((), {}), lambda result: None)
    METHODS.setdefault(("test", leaf), declared)


class Plain:
    """A component of a user's."""

    def _generate(self, text: str) -> str:
        return text


def test_nothing_is_assumed_of_an_unknown_component() -> None:
    facts = facts_of(Plain())
    assert (facts.concurrency, facts.local, facts.readonly, facts.owned) == (1, False, False, False)
    assert (facts.elementwise, facts.streams_equal, facts.twins) == (False, False, False)
    assert facts.pure is False and facts.reason == "nobody vouches for it"


def test_a_program_is_looked_through_once_also_if_nothing_is_found() -> None:
    asked = []

    def is_component(value: object) -> bool:
        asked.append(value)
        return False

    refers = References([lambda: asked], is_component, lambda value: False)
    assert not refers(object())
    once = len(asked)
    assert not refers(object()) and len(asked) == once > 0


def test_objects_that_answer_to_any_name_are_passed_by() -> None:
    class Anything:
        __slots__ = ("held",)

        def __getattr__(self, name: str) -> Any:
            return lambda *args: None  # as proxies and patched-in fakes do

    fake, component = Anything(), Plain()
    fake.held = component
    assert References([lambda: [fake]], lambda value: isinstance(value, Plain), lambda value: False)(component)


# --- facts ---------------------------------------------------------------------------------------------------------


def test_an_instance_goes_before_its_class_and_a_class_before_its_bases() -> None:
    class Parent(Plain):
        pass

    class Child(Parent):
        pass

    accel.register(Parent, concurrency=2, local=True, readonly=True)
    accel.register(Child, concurrency=3, readonly=False)
    child, other = Child(), Child()
    assert accel.register(child, concurrency=4) is child
    assert [facts_of(x).concurrency for x in (child, other, Parent())] == [4, 3, 2]
    assert [facts_of(x).local for x in (child, other)] == [True, True]
    assert facts_of(child).readonly is False


def test_later_declarations_add_to_earlier_ones() -> None:
    class Own(Plain):
        pass

    accel.register(Own, concurrency=2)
    accel.register(Own, local=True)
    accel.register(Own, concurrency=5)
    facts = facts_of(Own())
    assert (facts.concurrency, facts.local) == (5, True)


def test_a_declared_class_is_vouched_for_unless_it_is_said_to_be_impure() -> None:
    class Counted(Plain):
        pass

    class Narrow(Plain):
        pass

    accel.register(Narrow, concurrency=1)
    assert facts_of(Narrow()).pure is True
    assert facts_of(accel.register(Narrow(), pure=False)).pure is False
    assert facts_of(accel.register(Counted(), pure=True)).pure is True
    assert facts_of(Counted()).pure is False


def test_what_is_said_of_an_object_ends_with_it() -> None:
    first = accel.register(Plain(), concurrency=3)
    known = set(components._by_object)
    assert id(first) in known
    where = id(first)
    del first
    gc.collect()
    assert where not in components._by_object


def test_a_subclass_that_overrides_a_leaf_inherits_nothing() -> None:
    class Declared(Plain):
        pass

    class Same(Declared):
        def helper(self) -> str:
            return "of no concern"

    class Other(Declared):
        def _generate(self, text: str) -> str:
            return text + "!"

    class Below(Other):
        pass

    class Own(Plain):
        __accel__ = {"local": True, "concurrency": 9}

    class NotOwn(Own):
        def _stream(self, text: str) -> str:
            return text

    accel.register(Declared, pure=True, concurrency=4, local=True, readonly=True)
    assert facts_of(Same()).concurrency == 4
    for cls in (Other, Below):
        assert facts_of(cls()) == facts_of(Plain()), cls
    assert facts_of(Own()).pure is True and facts_of(Own()).concurrency == 9
    assert facts_of(NotOwn()).pure is False


@pytest.mark.parametrize("brought", ["base_url", "__init__", "annotation"])
def test_a_subclass_with_an_address_of_its_own_is_neither_local_nor_readonly(brought: str) -> None:
    class Declared(Plain):
        pass

    members: dict[str, Any] = {
        "base_url": {"base_url": "https://api.example.com"},
        "__init__": {"__init__": lambda self: None},
        "annotation": {"__annotations__": {"endpoint": str}},
    }[brought]
    accel.register(Declared, pure=True, concurrency=4, local=True, readonly=True)
    facts = facts_of(type("Elsewhere", (Declared,), members)())
    assert (facts.pure, facts.concurrency, facts.local, facts.readonly) == (True, 4, False, False)


def test_a_listed_name_counts_only_in_its_own_package() -> None:
    ChatOpenAI = type("ChatOpenAI", (Plain,), {"__module__": "my_package"})
    assert facts_of(ChatOpenAI()).pure is False
    listed = type("ChatOpenAI", (Plain,), {"__module__": "langchain_openai.chat_models"})
    assert facts_of(listed()).concurrency == 64
    sub = type("Sub", (listed,), {"__init__": lambda self: None})
    assert facts_of(sub()).concurrency == 1, "a subclass that does anything of its own may do anything"


def test_what_nobody_said_is_told_from_what_is_assumed() -> None:
    class Own(Plain):
        pass

    accel.register(Own, readonly=False)
    assert said_of(Own()) == Facts(readonly=False, reason="declared with accel.register")
    assert (facts_of(Own()).pure, facts_of(Own()).concurrency) == (True, 1)


def test_facts_are_completed_not_replaced() -> None:
    facts = Facts(pure=False, reason="mine").over(Facts(pure=True, local=True, reason="theirs"))
    assert facts == Facts(pure=False, local=True, reason="mine")


def test_register_says_what_it_knows() -> None:
    with pytest.raises(AccelError, match="knows no fact 'purr'.\n  Remedy: Did you mean 'pure'?"):
        accel.register(Plain, purr=True)
    with pytest.raises(AccelError, match="owned"):
        accel.register(Plain, owned=True)


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_register_refuses_a_concurrency_that_is_no_count(number: Any) -> None:
    with pytest.raises(AccelError, match="at least 1"):
        accel.register(Plain, concurrency=number)


# --- endpoints -----------------------------------------------------------------------------------------------------


class Address:
    """An address object, as HTTP libraries have them."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Client:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def listed_client(**fields: Any) -> Any:
    """Of a listed class that keeps its addresses in two fields of its own."""
    members = {"__module__": "langchain_anthropic.chat_models", "anthropic_api_url": None, "anthropic_proxy": None}
    client = type("ChatAnthropic", (), members)()
    client.__dict__.update(fields)
    return client


@pytest.mark.parametrize(
    "address",
    ["http://localhost:8000/v1", "localhost:11434", "http://127.0.0.1", "http://[::1]:80/", "https://10.1.2.3/x",
     "192.168.0.7", "http://user:pass@172.16.0.1:80"],
)  # fmt: skip
def test_private_endpoints(address: str) -> None:
    assert has_private_endpoint(listed_client(anthropic_api_url=address))


@pytest.mark.parametrize(
    "address",
    ["https://api.example.com/v1", "http://localhost.example.com", "http://localhost@example.com", "http://8.8.8.8",
     "http://127.0.0.1.example.com", "http://2130706433", "http://[broken", "", "http://example.com/?x=localhost",
     "http://example.com#@localhost", "printer.local", "127.0.0.1@example.com"],
)  # fmt: skip
def test_public_endpoints(address: str) -> None:
    assert not has_private_endpoint(listed_client(anthropic_api_url=address))


@pytest.mark.parametrize("name", ["base_url", "api_base", "openai_api_base", "endpoint", "host"])
def test_a_client_whose_addresses_nobody_knows_is_remote(name: str) -> None:
    """Whatever its fields say: it may send its data elsewhere."""
    assert not has_private_endpoint(Client(**{name: "http://127.0.0.1:8000/v1"}))


def test_one_public_address_is_enough_to_be_remote() -> None:
    client = listed_client(anthropic_api_url="http://localhost:8000", anthropic_proxy="https://proxy.example.com")
    assert not has_private_endpoint(client)


def test_an_address_object_counts_too() -> None:
    client = Client(base_url=Address("https://api.example.com"), host="localhost")
    assert endpoint_of(client) == "https://api.example.com"
    assert endpoint_of(Client()) is None and not has_private_endpoint(Client())
    assert not has_private_endpoint(listed_client())


# --- identity ------------------------------------------------------------------------------------------------------


class Secret:
    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret('****')"


@dataclass
class Options:
    temperature: float


@dataclass(eq=False)
class Handle:
    calls: int = 0


def identity(**fields: Any) -> Any:
    return identity_of(Client(**fields), by_object=False)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, True), (1, 1.0), ("a", "b"), ([1], [2]), ({"a": 1}, {"a": 2}), (Secret("x"), Secret("y")), ({1}, {2}),
     ({1: "a"}, {1: "b"}), (b"x", b"y"), (Options(0.1), Options(0.2)), (Handle(), Handle()), (None, "None"),
     ({"s": Secret("x")}, {"s": Secret("y")}), ([Options(0.1)], [Options(0.2)])],
)  # fmt: skip
def test_clients_that_differ_in_a_field_are_not_the_same(left: Any, right: Any) -> None:
    assert identity(field=left) != identity(field=right)


@pytest.mark.parametrize(
    "make",
    [lambda: Secret("x"), lambda: {"a": [1, "x", None]}, lambda: {1, 2, 3}, lambda: Options(0.1), lambda: b"x"],
)  # fmt: skip
def test_clients_with_equal_fields_are_the_same(make: Any) -> None:
    assert identity(field=make()) == identity(field=make())
    assert hash(identity(field=make())) == hash(identity(field=make()))


def test_identity_is_taken_at_its_moment() -> None:
    client = Client(options=Options(0.1), rows={"a": [1]}, tags={1})
    before = identity_of(client, by_object=False)
    client.options.temperature = 0.9  # type: ignore[attr-defined]
    changed = identity_of(client, by_object=False)
    client.rows["a"].append(2)  # type: ignore[attr-defined]
    again = identity_of(client, by_object=False)
    client.tags.add(2)  # type: ignore[attr-defined]
    assert len({before, changed, again, identity_of(client, by_object=False)}) == 4


def _moves(rows: dict[str, Any]) -> None:
    rows["b"].append(rows["a"].pop())


CHANGES: dict[str, Any] = {
    "a value": lambda rows: rows.update(c=2),
    "a name": lambda rows: rows.update(d=rows.pop("c")),
    "an item of a list": lambda rows: rows["a"].append(1),
    "where an item is": _moves,
    "an equal number of another type": lambda rows: rows.update(c=True),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_inside_a_field_is_seen(change: Any) -> None:
    client = Client(options=Options(0.1), rows={"a": [1, 2], "b": [3], "c": 1}, name="x")
    identities = Identities()
    before = identities.of(client, by_object=False)
    assert identities.of(client, by_object=False) is before
    change(client.rows)  # type: ignore[attr-defined]
    changed = identities.of(client, by_object=False)
    assert changed != before
    assert changed == identity_of(client, by_object=False)


def test_a_change_while_it_is_looked_at_is_seen_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread makes it between the moments in which its parts are taken and compared; in a later run, too."""
    client = Client(rows={"a": 1}, name="x")
    compare = identities_of.exactly

    def meanwhile(tree: Any) -> Any:
        compared = compare(tree)
        client.rows["a"] = 2  # type: ignore[attr-defined]
        return compared

    run = Identities()
    monkeypatch.setattr(identities_of, "exactly", meanwhile)
    run.of(client, by_object=False)
    monkeypatch.undo()
    later = Identities(run.seen([client]))
    assert later.of(client, by_object=False) == identity_of(client, by_object=False)


class Slotted:
    __slots__ = ("__weakref__", "name", "unset")

    def __init__(self, name: str) -> None:
        self.name = name


class Further(BaseModel, extra="allow"):
    name: str


def test_fields_in_slots_and_further_ones_of_models_count() -> None:
    for one, other, alike in (
        (Slotted("a"), Slotted("b"), Slotted("a")),
        (Further(name="x", style=1), Further(name="x", style=2), Further(name="x", style=1)),  # type: ignore[call-arg]
    ):
        told = [identity_of(each, by_object=False) for each in (one, other, alike)]
        assert told[0] == told[2] != told[1]


def test_a_field_that_comes_or_goes_is_seen() -> None:
    client, identities = Client(name="x", size=1), Identities()
    before = identities.of(client, by_object=False)
    client.added = 1  # type: ignore[attr-defined]
    assert identities.of(client, by_object=False) != before
    del client.added  # type: ignore[attr-defined]
    assert identities.of(client, by_object=False) == before
    client.name = "y"  # type: ignore[attr-defined]
    assert identities.of(client, by_object=False) == identity_of(client, by_object=False) != before


def test_what_a_client_works_out_and_keeps_is_no_part_of_it() -> None:
    """It appears with the first use, which must not make another client of it."""

    class Lazy(Client):
        @functools.cached_property
        def handle(self) -> Handle:
            return Handle()

    client = Lazy(a=1)
    before = identity_of(client, by_object=False)
    assert client.handle is client.handle
    assert identity_of(client, by_object=False) == before != identity_of(Lazy(a=2), by_object=False)


def test_a_client_that_holds_itself_has_an_identity() -> None:
    client = Client(loop=[])
    client.loop.append(client.loop)  # type: ignore[attr-defined]
    assert identity_of(client, by_object=False) == identity_of(client, by_object=False)


def googles(name: str, module: str) -> type:
    return type(name, (Client,), {"__module__": f"google.genai.{module}"})


MODELS, API, OPTIONS = googles("Models", "models"), googles("BaseApiClient", "_api_client"), googles("Options", "types")


def of_googles(verify: ssl.SSLContext | None = None, key: str = "k", url: str = "https://models.example") -> Any:
    """The identity of a client as Google's SDK makes them: connections of its settings, with a context of its own where
    these hold none."""
    options = OPTIONS(base_url=url, client_args={"verify": verify} if verify is not None else None)
    args = {"verify": verify or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
    api = API(_http_options=options, api_key=key, _async_httpx_client_args=args, _retry=object())
    api._sync_auth_lock = threading.Lock()
    return identity_of(MODELS(_api_client=api), by_object=False)


def test_clients_of_googles_that_were_made_alike_are_one() -> None:
    one, other = (ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) for _ in range(2))
    assert of_googles() == of_googles()
    assert of_googles(verify=one) == of_googles(verify=one)
    made = [of_googles(), of_googles(key="j"), of_googles(url="https://other.example")]
    made += [of_googles(verify=one), of_googles(verify=other)]
    assert len(set(made)) == len(made)


def test_another_class_is_another_client() -> None:
    class Other(Client):
        pass

    assert identity_of(Other(a=1), by_object=False) != identity(a=1)


def test_stores_are_themselves_only() -> None:
    store = Client(a=1)
    assert identity_of(store, by_object=True) == identity_of(store, by_object=True)
    assert identity_of(store, by_object=True) != identity_of(Client(a=1), by_object=True)


def test_what_is_said_of_an_object_later_holds_from_then_on() -> None:
    store = Client(a=1)
    assert not agreed(store)
    accel.register(store, concurrency=3)
    assert agreed(store) == facts_of(store).concurrency == 3
    accel.register(store, concurrency=5)
    assert agreed(store) == facts_of(store).concurrency == 5
    accel.register(store, pure=False)
    assert not agreed(store)


def test_what_was_said_of_an_object_that_is_gone_is_not_said_of_the_next_one() -> None:
    for number in range(1, 50):
        store = Client(number=number)
        assert not agreed(store)
        accel.register(store, concurrency=number)
        assert agreed(store) == number
        del store
