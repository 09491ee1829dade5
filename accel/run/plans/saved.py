"""Plans as JSON: templates, sites and bounds; no components, no secrets, no traces.

A loaded plan is followed from the first run on. Each prediction is still checked against the demand it answers, so a
plan of another program can cost time but never change a result; sites that don't match are simply never demanded.
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ...errors import ConfigurationError
from ...graph.first import First
from ...graph.ir import Confidence, Evidence, Graph, Level, Node, When
from ...graph.ops import OPS
from ...graph.verify import GraphError, verify
from ...learn.computing.computed import looks_up
from ...learn.contexts.seen_in import SeenIn
from ...learn.covers.foreign import literals
from ...text.pasted import is_opaque
from ...text.templates import Ref
from ...text.turns import Called
from ...text.values import Tree
from ...trace.ambient import CREDENTIAL, SECRET
from .plan import Plan
from .used import SavedCall
from .which import Identity
from .written import decode, decode_most, decode_ref, encode, encode_most, encode_ref

VERSION = 16
FOREIGN = "its input holds text that is neither the program's nor a known value, which may be somebody's data"
_NOBODYS = re.compile(r"True|False|None|(?i:yes|no)|\d{1,3}")
"""What a decision may go by in any case."""
_LETTERS = re.compile(r"[^\W\d]*")
_AGAIN = "Write a new one with fast.save_plan(path)."


def save(plan: Plan, path: str) -> None:
    """Write what is verified. Nodes that hold an object, were seen with one input only, or say what neither the program
    nor a known value says, or hold a key, keep their place, without their input: the text in them may be
    somebody's."""
    nodes = [_encode_node(node, plan) for node in plan.learnt.nodes]
    calls = {site: [call.cls, call.family, call.method, call.like] for site, call in _calls(plan).items()}
    of = plan.made_for
    program = [of.kind, *sorted(of.nodes)] if of is not None else []
    data = {"accel_plan": VERSION, "program": program, "nodes": nodes, "calls": calls}
    data["barriers"], data["moved"] = plan.barriers, dict(plan.moved)
    _write(os.path.realpath(path), json.dumps(data, indent=1))


def _write(path: str, text: str) -> None:
    """All of it in one moment: other workers of the server may be about to read it, or to write their own."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe, a device
        Path(path).write_text(text, encoding="utf-8")
        return
    meanwhile = Path(f"{path}.{os.getpid()}-{threading.get_ident()}")
    try:
        meanwhile.write_text(text, encoding="utf-8")
        meanwhile.replace(path)
    finally:
        meanwhile.unlink(missing_ok=True)


def load(path: str) -> Plan:
    """A plan from `path`. Raises ConfigurationError if the file is missing or isn't a plan of this version."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"There is no plan at {path}.", "Write one with fast.save_plan(path).") from None
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.", "Give the path of a plan.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not JSON: {error}", _AGAIN) from None
    if not isinstance(data, dict) or data.get("accel_plan") != VERSION:
        raise ConfigurationError(f"{path} is not an Accel plan of version {VERSION}.", _AGAIN)
    plan = Plan()
    try:
        graph = Graph(tuple(_decode_node(node) for node in data["nodes"]))
        verify(graph)
        plan.contexts.learnt(graph)
        for node in data["nodes"]:
            if node["evidence"]["verified"]:
                known = plan.contexts.known(node["name"])
                known.seen_in, known.foreign = _decode_seen_in(node["seen_in"]), False
                known.seen_with = _decode_seen_in(node["seen_with"])
        calls = {str(site): _decode_call(call) for site, call in data["calls"].items()}
        program = _decode_program(data["program"])
        plan.barriers = _decode_barriers(data["barriers"])
        plan.moved = {str(site): str(name) for site, name in data["moved"].items()}
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, GraphError) as error:
        raise ConfigurationError(f"The plan in {path} is damaged: {error}", _AGAIN) from None
    if program is not None:
        plan.make_for(program)
    plan.saved = graph
    plan.follow(graph)
    plan.used.saved = calls
    return plan


def _calls(plan: Plan) -> dict[str, SavedCall]:
    """What every call site calls, here or, where it was not seen here, in the process before."""
    first: dict[int, str] = {}
    several = plan.used.varying | plan.used.mixed
    here = {}
    for site, (component, method) in plan.used.at.items():
        like = first.setdefault(id(component), site) if site not in several else site
        here[site] = SavedCall(type(component).__qualname__, method.family, method.name, like)
    before = dict(plan.used.saved)
    for site, call in before.items():
        if call.like in several:
            before[site] = replace(call, like=site)
        elif call.like in here:
            before[site] = replace(call, like=here[call.like].like)
    return before | here


def _decode_program(data: Any) -> Identity | None:
    if not isinstance(data, list) or not all(isinstance(part, str) for part in data):
        raise ValueError(f"{data!r} is no program")
    return Identity(data[0], frozenset(data[1:])) if data else None


def _decode_call(data: Any) -> SavedCall:
    if not isinstance(data, list) or not all(isinstance(part, str) for part in data):
        raise ValueError(f"{data!r} is no call")
    return SavedCall(*data)


# --- encoding: every object is a list that starts with its kind ------------------------------------------------------


def _encode_node(node: Node, plan: Plan) -> dict[str, Any]:
    keep = node.evidence.confidence == "verified" and not is_opaque(node.input) and node.site not in plan.used.mixed
    keep = keep and node.site not in plan.guarded and not looks_up(node)
    foreign = plan.contexts.known(node.name).foreign if keep else False
    foreign = plan.program.lacks(node) if foreign is None else foreign
    keep = keep and not foreign and not _holds_key(node.input) and not any(_names(when, plan) for when in node.when)
    keep = keep and not any(_leads_by_name(ref, plan) for ref in (*node.refs(), *(when.ref for when in node.when)))
    return {
        "name": node.name,
        "op": node.op.name,
        "site": node.site,
        "within": node.within,
        "method": node.method,
        "many": node.many,
        "ancestry": list(node.ancestry),
        "input": encode(node.input) if keep or node.relay is not None else None,
        "level": _encode_level(node.level) if keep and node.level is not None else None,
        "when": [_encode_when(when) for when in node.when] if keep else [],
        "first": [node.first.op, node.first.method, *node.first.path] if node.first is not None else None,
        "evidence": _encode_evidence(node, keep, foreign),
        "seen_in": _encode_seen_in(plan.contexts.known(node.name).seen_in) if keep else None,
        "seen_with": _encode_seen_with(plan.contexts.known(node.name).seen_with) if keep else None,
    }


def _names(when: When, plan: Plan) -> bool:
    """Whether it tells apart by words that are not the program's: somebody's name may be one, or a long number. A tool
    that is called is none, nor what was written before."""
    called = any(isinstance(step, Called) for step in when.ref.path)
    if called or not plan.program.has_run:
        return False
    return not all(_NOBODYS.fullmatch(word) or plan.program.says(word) for word in (*when.yes, *when.no))


def _leads_by_name(ref: Ref, plan: Plan) -> bool:
    """Whether a key on the way may be somebody's address or number: not letters alone, and not said by the program."""
    keys = (step for step in ref.path if isinstance(step, str) and _LETTERS.fullmatch(step) is None)
    return plan.program.has_run and not all(map(plan.program.says, keys))


def _holds_key(tree: Tree) -> bool:
    """Whether a literal is called a credential. A `key` alone is rather that of a dict."""
    if isinstance(tree, list):
        return any(map(_holds_key, tree))
    return isinstance(tree, dict) and any(
        _holds_key(value) or (name != "key" and CREDENTIAL.search(str(name)) is not None and any(literals(value)))
        for name, value in tree.items()
    )


def _decode_node(data: dict[str, Any]) -> Node:
    evidence, level, first = _decode_evidence(data["evidence"]), data["level"], data["first"]
    return Node(
        data["name"],
        OPS[data["op"]],
        decode(data["input"]) if evidence.confidence == "verified" or data["op"] == "relay" else None,
        data["site"],
        data["within"],
        data["method"],
        _decode_level(level) if level is not None else None,
        data["many"],
        tuple(map(_decode_when, data["when"])),
        First(first[0], first[1], tuple(first[2:])) if first else None,
        evidence,
        ancestry=tuple(map(bool, data["ancestry"])),
    )


def _decode_barriers(data: dict[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    return {
        str(node): {str(leg): {str(site): int(count) for site, count in made.items()} for leg, made in stops.items()}
        for node, stops in data.items()
    }


def _encode_evidence(node: Node, keep: bool, foreign: bool) -> dict[str, Any]:
    """What was verified; of the rest, why it is not, where it could be."""
    evidence, could = node.evidence, node.op.engine != "none"
    why = FOREIGN if foreign else evidence.reason or "not verified when the plan was saved"
    return {
        "verified": keep,
        "always": evidence.always,
        "at_once": evidence.at_once,
        "unreplaced": evidence.unreplaced if keep else [],
        "twins": evidence.twins if keep else [],
        "reason": why if could and not keep else "",
    }


def _decode_evidence(data: dict[str, Any]) -> Evidence:
    confidence: Confidence = "verified" if data["verified"] else "opaque"
    unreplaced = tuple(map(tuple, data["unreplaced"]))
    twins = tuple((tuple(one), tuple(other)) for one, other in data["twins"])
    return Evidence(confidence, data["always"], data["at_once"], unreplaced, twins, reason=data["reason"])


def _encode_seen_in(found: SeenIn) -> dict[str, Any]:
    """Digests of names and values; what only this process can compare equals nothing elsewhere."""
    opaque = {key: [_of_this_process(value) for value in seen] for key, seen in found.values.items()}
    return {"runs": found.runs, "values": opaque, "free": sorted(found.free)}


def _encode_seen_with(found: SeenIn) -> dict[str, Any]:
    """Fields that only this process can compare, keys and objects, tell nothing elsewhere: they are as if they did not
    matter. What a component says in words is there."""
    told = _encode_seen_in(found)
    untold = {key for key, seen in told["values"].items() if any(value.startswith("~") for value in seen)}
    return {**told, "free": sorted(untold.union(found.free))}


def _of_this_process(value: str) -> str:
    return f"~{value}" if value.startswith(SECRET) else value


def _decode_seen_in(data: dict[str, Any]) -> SeenIn:
    values = {str(key): [str(value) for value in seen] for key, seen in data["values"].items()}
    return SeenIn(bool(data["runs"]), values, set(map(str, data["free"])))


def _encode_when(when: When) -> dict[str, Any]:
    return {"ref": encode_ref(when.ref), "yes": sorted(when.yes), "no": sorted(when.no), "only": when.only}


def _decode_when(data: dict[str, Any]) -> When:
    return When(decode_ref(data["ref"]), frozenset(data["yes"]), frozenset(data["no"]), bool(data["only"]))


def _encode_level(level: Level) -> dict[str, Any]:
    data = {field.name: getattr(level, field.name) for field in fields(level)}
    return data | {"domain": encode_ref(level.domain) if level.domain else None, "cap": encode_most(level.cap)}


def _decode_level(data: dict[str, Any]) -> Level:
    domain = decode_ref(data["domain"]) if data["domain"] is not None else None
    return Level(**{**data, "domain": domain, "cap": decode_most(data["cap"])})
