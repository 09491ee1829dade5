"""Several programs on one backend: what they share, what they don't, and how they are told apart."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import accel_local
from accel.backend import Backend, BackendError
from accel.engine import Sampling
from accel.engine.conformance import QUESTION, RECORDS, answer
from accel.errors import EngineStartError, ModelNotFound, RequestError
from accel.process import clock
from backends.tests.ray_cluster.conftest import EMBEDDING, STORE, sim_llm
from backends.tests.ray_cluster.small_engines import BreakingConfig, OwnStoreConfig

pytestmark = pytest.mark.engines

ASKS = """
import json, sys
import accel_local
from accel.backend import Backend
from accel.engine import Sampling
from backends.tests.ray_cluster.conftest import EMBEDDING, STORE, sim_llm

address, namespace, profile, mine = sys.argv[1:]
Backend.ray(address, namespace=namespace).use()
said = {}
if mine == "talks":
    llm = accel_local.engine(sim_llm(profile))
    said["text"] = "".join(delta.text for delta in accel_local.stream(llm.generate("The sea is", Sampling())))
else:
    said["vector"] = accel_local.run(accel_local.engine(EMBEDDING).embed(["the sea"]))[0]
said["count"] = accel_local.run(accel_local.engine(STORE).count())
print(json.dumps(said), flush=True)
sys.stdin.readline()
"""


def here() -> str:
    import ray

    return str(ray.get_runtime_context().gcs_address)


def described(name: str, namespace: str) -> dict[str, Any]:
    import ray

    found: dict[str, Any] = ray.get(ray.get_actor(name, namespace=namespace).describe.remote())
    return found


def names(namespace: str) -> list[str]:
    from accel_ray.cluster import Cluster
    from accel_ray.config import LocalRay

    return list(Cluster(None, namespace, LocalRay()).handles())


@pytest.fixture
def shared(namespace: str, fast_profile: str) -> Iterator[str]:
    """A backend of a model, an embedding and a store, up."""
    model = {"kind": "sim_llm", "model": fast_profile, "options": {"max_model_len": 2048}}
    kinds = {"embedding": "sim_embedding", "records": "sim_store"}
    engines = {"llm": model, **{name: {"kind": kind, "model": fast_profile} for name, kind in kinds.items()}}
    with Backend.ray(config={"namespace": namespace, "engines": engines}):
        for config in (sim_llm(fast_profile), EMBEDDING, STORE):
            accel_local.engine(config)
        yield namespace


def test_two_programs_share_one_backend(shared: str, fast_profile: str) -> None:
    """They attach by address, know nothing of how engines are deployed, and see each other's records."""
    accel_local.run(accel_local.engine(STORE).ingest(RECORDS))
    expected = accel_local.run(answer(accel_local.engine(sim_llm(fast_profile)), "The sea is", Sampling()))[0]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", ASKS, here(), shared, fast_profile, mine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for mine in ("talks", "embeds")
    ]
    try:
        said: dict[str, Any] = {}
        for program in programs:
            assert program.stdout is not None
            said.update(json.loads(program.stdout.readline()))
        assert described("records:0", shared)["clients"] == 3, "both, and this program"
        assert described("llm:0", shared)["clients"] == 2
    finally:
        for program in programs:
            program.communicate("\n", timeout=60)
    assert said["text"] == expected and said["count"] == len(RECORDS)
    assert said["vector"] == accel_local.run(accel_local.engine(EMBEDDING).embed(["the sea"]))[0]
    assert [program.returncode for program in programs] == [0, 0]
    assert described("records:0", shared)["clients"] == 1, "they have left"
    assert sorted(names(shared)) == ["embedding:0", "llm:0", "records:0"], "and started nothing"


def test_what_is_temporary_is_a_program_s_own_and_goes_with_it(namespace: str) -> None:
    import ray

    from accel_ray.wire import Call, Private

    config = OwnStoreConfig("mine")
    with Backend.ray(namespace=namespace):
        store = accel_local.engine(config)
        accel_local.run(store.ingest(RECORDS))
        (actor,) = names(namespace)
        handle = ray.get_actor(actor, namespace=namespace)
        other = Private(config, "another program")
        ray.get(handle.open.remote(other, "another program"))
        counted = ray.get(handle.serve.remote(Call("1", "another program", other, "count")))
        assert counted.result() == 0 and accel_local.run(store.count()) == len(RECORDS)
        assert described(actor, namespace)["engines"] == 2
    assert described(actor, namespace)["engines"] == 1
    with Backend.ray(namespace=namespace):
        assert accel_local.run(accel_local.engine(config).count()) == 0


# --- what is started, and what isn't


def test_an_engine_that_does_not_start_leaves_no_actor(namespace: str) -> None:
    with Backend.ray(namespace=namespace):
        with pytest.raises(ModelNotFound, match="is nowhere") as caught:
            accel_local.engine(BreakingConfig(starts=False))
        assert caught.value.remedy == "give another"
        assert names(namespace) == []
        engine: Any = accel_local.engine(BreakingConfig())
        with pytest.raises(RequestError, match="ZeroDivisionError: an engine's own mistake"):
            accel_local.run(engine.embed(["fail"]))
        assert accel_local.run(engine.embed(["pid"]))


def test_threads_are_limited_only_where_cpus_are_reserved(namespace: str) -> None:
    from accel_ray.cluster import Cluster
    from accel_ray.config import EngineSpec, LocalRay

    assert "OMP_NUM_THREADS" not in os.environ
    with Backend.ray(namespace=namespace):
        engine: Any = accel_local.engine(BreakingConfig())
        assert accel_local.run(engine.embed(["threads"])) == [""]
    with Backend.ray(namespace=f"{namespace}-reserved"):
        (actor,) = EngineSpec("two", BreakingConfig(), num_cpus=2).actors()
        Cluster(None, f"{namespace}-reserved", LocalRay()).start(actor)
        engine = accel_local.engine(BreakingConfig())
        assert accel_local.run(engine.embed(["threads"])) == ["2"]
        assert names(f"{namespace}-reserved") == ["two:0"]
    from backends.tests.ray_cluster.conftest import end_actors

    end_actors(f"{namespace}-reserved")


def test_logical_gpus_are_shared_and_not_overbooked(namespace: str, fast_profile: str) -> None:
    def model(name: str, gpus: float, replicas: int = 1) -> dict[str, Any]:
        options = {"name": name, "max_model_len": 2048}
        return {"kind": "sim_llm", "model": fast_profile, "options": options, "num_gpus": gpus, "replicas": replicas}

    engines = {"halves": model("halves", 0.5, 2), "whole": model("whole", 1), "more": model("more", 0.5)}
    with Backend.ray(config={"namespace": namespace, "engines": engines}):
        for name in ("whole", "halves"):
            engine = accel_local.engine(sim_llm(fast_profile, name=name))
            assert accel_local.run(answer(engine, QUESTION, Sampling(max_tokens=3)))[0]
        gpus = {name: described(name, namespace)["gpus"] for name in names(namespace)}
        assert gpus["halves:0"] == gpus["halves:1"] != gpus["whole:0"]
        assert set(gpus.values()) == {"0", "1"}
        with pytest.raises(EngineStartError, match="'more' doesn't fit: .* wants 0.5 GPU") as caught:
            accel_local.engine(sim_llm(fast_profile, name="more"))
        assert "0 of 2 GPUs" in caught.value.what and "num_gpus" in caught.value.remedy
        assert sorted(names(namespace)) == ["halves:0", "halves:1", "whole:0"]


# --- who may not


def refused(namespace: str, config: Any = None, address: str | None = None) -> BackendError:
    before = accel_local.running()
    with pytest.raises(BackendError) as caught, Backend.ray(address, config, namespace=namespace):
        pass
    assert accel_local.running() == before and caught.value.remedy
    return caught.value


def test_a_backend_of_another_version(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import accel
    from accel_ray import wire

    protocol = wire.PROTOCOL
    monkeypatch.setattr(accel, "__version__", "9.9.9")
    message = refused(shared).what
    assert f"runs Accel 0.1.0 (protocol {protocol}), this program Accel 9.9.9 (protocol {protocol})" in message
    monkeypatch.undo()
    monkeypatch.setattr(wire, "PROTOCOL", protocol + 1)
    assert f"this program Accel 0.1.0 (protocol {protocol + 1})" in refused(shared).what


def test_a_name_that_is_taken(shared: str, fast_profile: str) -> None:
    import ray

    other = {"llm": {"kind": "sim_llm", "model": fast_profile, "options": {"name": "other"}}}
    error = refused(shared, {"engines": other})
    assert f"{shared!r} has another engine 'llm'" in error.what and "accel down" in error.remedy

    class Stranger:
        def hello(self) -> None: ...

    theirs = f"{shared}-theirs"
    stranger: Any = ray.remote(Stranger)
    kept = stranger.options(name="llm:0", namespace=theirs, num_cpus=0).remote()
    assert "is taken by an actor that isn't Accel's" in refused(theirs).what
    ray.kill(kept)


def test_what_no_engine_serves(shared: str, fast_profile: str) -> None:
    with Backend.ray(namespace=shared):
        with pytest.raises(BackendError, match="its llm has max_model_len=2048, the program asks for"):
            accel_local.engine(sim_llm(fast_profile).__class__(fast_profile, max_model_len=512))
        with pytest.raises(BackendError, match="has no engine for an engine that breaks; it has"):
            accel_local.engine(BreakingConfig())


def test_another_ray_than_the_one_this_process_is_on(namespace: str) -> None:
    error = refused(namespace, address="127.0.0.1:1")
    assert "This process is connected to the Ray at" in error.what


def test_a_ray_that_is_away_for_a_moment_is_not_gone(ray_up: None) -> None:
    from accel_ray.cluster import Cluster
    from accel_ray.config import LocalRay
    from accel_ray.remote import GONE_S, Session

    session, now_s = Session(Cluster(None, "x", LocalRay())), 100.0
    seen = []
    with clock.replaced(lambda: now_s):
        for wait_s, reachable in (
            (0, False),
            (GONE_S - 1, False),
            (5, True),
            (0, False),
            (GONE_S - 1, False),
            (1, False),
        ):
            now_s += wait_s
            seen.append(session.missing(reachable))
    assert seen == [False] * 5 + [True]


UNREACHABLE = """
import sys
from accel.backend import Backend
from accel.errors import AccelError

for address in sys.argv[1:]:
    try:
        Backend.ray(address).use()
    except AccelError as error:
        print(type(error).__name__, error.what, "|", error.remedy, flush=True)
"""


def test_a_ray_that_can_not_be_reached(tmp_path: Path) -> None:
    """At once, and without ending the process, which Ray itself would do."""
    pytest.importorskip("ray", reason="the extra ray is not installed")
    addresses = ["127.0.0.1:1", "no-such-host.invalid:6379", "ray://h:10001", "nonsense", "h:99999"]
    environment = {**os.environ, "ACCEL_CACHE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", UNREACHABLE, *addresses], capture_output=True, text=True, timeout=100, env=environment
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(addresses), done.stderr
    assert (
        lines[0].startswith("BackendError No Ray can be reached at 127.0.0.1:1: ") and "check host and port" in lines[0]
    )
    assert lines[1].startswith("BackendError No Ray can be reached at no-such-host.invalid:6379")
    assert lines[2].startswith("ConfigurationError ray://h:10001 is an address of Ray's client server")
    assert lines[3].startswith("ConfigurationError 'nonsense' is no address of a Ray.")
    assert lines[4].startswith("ConfigurationError 'h:99999' is no address of a Ray.")


# --- a Ray of a program's own

OWN = """
import sys
import accel_local
from accel.backend import Backend
from accel.engine import Sampling
from backends.tests.ray_cluster.conftest import sim_llm

Backend.ray(namespace="own").use()
llm = accel_local.engine(sim_llm(sys.argv[1]))
endless = accel_local.stream(llm.generate("The sea is", Sampling(max_tokens=2000, ignore_end=True)))
next(endless)
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("ending", [None, signal.SIGTERM, signal.SIGKILL], ids=["exit", "SIGTERM", "SIGKILL"])
def test_a_program_s_own_ray_ends_with_it(fast_profile: str, ending: signal.Signals | None) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    from backends.tests.leftovers import marked

    with marked([sys.executable, "-c", OWN, fast_profile]) as program:
        assert program.process.stdout is not None
        assert program.process.stdout.readline() == "ready\n"
        assert len(program.left()) > 3, "Ray must run, or this proves nothing"
        if ending is not None:
            program.process.send_signal(ending)
        program.process.communicate("\n", timeout=60)
        assert program.process.returncode == (0 if ending is None else -ending)
        program.gone()
