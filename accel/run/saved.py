"""Plans as JSON: templates, sites and bounds; no components, no secrets, no traces.

A loaded plan is followed from the first run on. Each prediction is still checked against the demand it answers, so a
plan of another program can cost time but never change a result; sites that don't match are simply never demanded.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..graph.ir import Confidence, Evidence, First, Graph, Level, Node, When
from ..graph.ops import OPS
from ..graph.verify import GraphError, verify
from ..learn.computed import looks_up
from ..learn.foreign import literals
from ..learn.seen_in import SeenIn
from ..text.dumps import Dump
from ..text.functions import Computed
from ..text.pasted import is_opaque
from ..text.templates import (
    COUNT,
    ITEMS,
    STAR,
    STRIP,
    UNIQUE,
    Clip,
    Collect,
    Counter,
    Each,
    Edit,
    Escape,
    Extract,
    Head,
    Join,
    Ref,
    Taken,
    Talk,
    Template,
    Verdict,
    Whole,
)
from ..text.turns import CALLED, Turn
from ..text.values import Tree
from ..trace.ambient import CREDENTIAL, SECRET
from .plan import Plan
from .used import SavedCall
from .which import Identity

VERSION = 12
FOREIGN = "its input holds text that is neither the program's nor a known value, which may be somebody's data"
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
    except ValueError as error:
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
    keep = keep and not foreign and not _holds_key(node.input)
    return {
        "name": node.name,
        "op": node.op.name,
        "site": node.site,
        "within": node.within,
        "method": node.method,
        "many": node.many,
        "ancestry": list(node.ancestry),
        "input": _encode(node.input) if keep else None,
        "level": _encode_level(node.level) if keep and node.level is not None else None,
        "when": [_encode_when(when) for when in node.when] if keep else [],
        "first": [node.first.op, node.first.method, *node.first.path] if node.first is not None else None,
        "evidence": _encode_evidence(node.evidence, keep, foreign),
        "seen_in": _encode_seen_in(plan.contexts.known(node.name).seen_in) if keep else None,
        "seen_with": _encode_seen_with(plan.contexts.known(node.name).seen_with) if keep else None,
    }


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
        _decode(data["input"]) if evidence.confidence == "verified" else None,
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


def _encode_evidence(evidence: Evidence, keep: bool, foreign: bool) -> dict[str, Any]:
    """What was verified; of the rest, why it is not."""
    return {
        "verified": keep,
        "always": evidence.always,
        "at_once": evidence.at_once,
        "unreplaced": evidence.unreplaced if keep else [],
        "reason": "" if keep else FOREIGN if foreign else evidence.reason or "not verified when the plan was saved",
    }


def _decode_evidence(data: dict[str, Any]) -> Evidence:
    confidence: Confidence = "verified" if data["verified"] else "opaque"
    unreplaced = tuple(map(tuple, data["unreplaced"]))
    return Evidence(confidence, data["always"], data["at_once"], unreplaced, reason=data["reason"])


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
    return {"ref": _encode_ref(when.ref), "yes": sorted(when.yes), "no": sorted(when.no), "only": when.only}


def _decode_when(data: dict[str, Any]) -> When:
    return When(_decode_ref(data["ref"]), frozenset(data["yes"]), frozenset(data["no"]), bool(data["only"]))


def _encode_level(level: Level) -> dict[str, Any]:
    domain = _encode_ref(level.domain) if level.domain is not None else None
    return {
        "domain": domain,
        "repeat": level.repeat,
        "cap": level.cap,
        "exact": level.exact,
        "seen": level.seen,
        "distinct": level.distinct,
        "first": level.first,
        "sparse": level.sparse,
    }


def _decode_level(data: dict[str, Any]) -> Level:
    domain = _decode_ref(data["domain"]) if data["domain"] is not None else None
    return Level(**{**data, "domain": domain})


def _encode(tree: Tree) -> Any:
    if isinstance(tree, Template):
        return {"$text": [_encode_part(part) for part in tree.parts]}
    if isinstance(tree, Whole):
        return {"$whole": _encode_ref(tree.ref)}
    if isinstance(tree, Collect):
        distinct = list(tree.distinct) if tree.distinct is not None else None
        return {"$collect": [_encode_ref(tree.ref), tree.bound, distinct, tree.limit]}
    if isinstance(tree, Talk):
        return {"$talk": [_encode(tree.start), tree.after, *map(_encode_taken, tree.turns)]}
    if isinstance(tree, dict):
        return {"$": {key: _encode(value) for key, value in tree.items()}}
    return [_encode(item) for item in tree] if isinstance(tree, list) else tree


def _decode(data: Any) -> Tree:
    if isinstance(data, list):
        return [_decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$text" in data:
        return Template(tuple(_decode_part(part) for part in data["$text"]))
    if "$whole" in data:
        return Whole(_decode_ref(data["$whole"]))
    if "$collect" in data:
        ref, bound, distinct, limit = data["$collect"]
        return Collect(_decode_ref(ref), bound, tuple(distinct) if distinct is not None else None, limit)
    if "$talk" in data:
        start, after, *turns = data["$talk"]
        return Talk(_decode(start), tuple(map(_decode_taken, turns)), after)
    return {key: _decode(value) for key, value in data["$"].items()}


def _encode_taken(taken: Taken) -> list[Any]:
    turn = taken.turn
    style = astuple(turn.style) if turn.style is not None else None
    frames = [_encode(dict(frame)) for frame in (turn.said, turn.told)]
    return [*frames, turn.named, style, *map(_encode_ref, (taken.answer, *taken.results))]


def _decode_taken(data: list[Any]) -> Taken:
    said, told, named, style, *refs = data
    turn = Turn(_decode(said), _decode(told), named, Dump(*style) if style is not None else None)
    answer, *results = map(_decode_ref, refs)
    return Taken(turn, answer, tuple(results))


def _encode_part(part: Any) -> Any:
    if isinstance(part, Join):
        sep = [p if isinstance(p, str) else p.offset for p in part.sep]
        row = [_encode_part(inner) for inner in part.row]
        return {"join": row, "sep": sep, "limit": part.limit, "bound": part.bound}
    if isinstance(part, Counter):
        return {"counter": part.offset}
    return part if isinstance(part, str) else {"ref": _encode_ref(part)}


def _decode_part(data: Any) -> Any:
    if isinstance(data, str):
        return data
    if "join" in data:
        sep = tuple(p if isinstance(p, str) else Counter(p) for p in data["sep"])
        first, *rest = map(_decode_part, data["join"])
        return Join(first, sep, data["limit"], data["bound"], tuple(rest))
    return Counter(data["counter"]) if "counter" in data else _decode_ref(data["ref"])


def _encode_ref(ref: Ref) -> list[Any]:
    return [ref.node, *map(_encode_step, ref.path)]


_CONSTANT: dict[str, Any] = {
    "star": STAR,
    "unique": UNIQUE,
    "items": ITEMS,
    "strip": STRIP,
    "count": COUNT,
    "called": CALLED,
}
_OF_ONE_FIELD: dict[str, tuple[Any, str]] = {
    "extract": (Extract, "name"),
    "escape": (Escape, "name"),
    "edit": (Edit, "name"),
    "clip": (Clip, "n"),
    "head": (Head, "end"),
    "verdict": (Verdict, "word"),
}


def _encode_step(step: Any) -> Any:
    for name, constant in _CONSTANT.items():
        if step is constant or step == constant:
            return {name: 1}
    for name, (cls, field) in _OF_ONE_FIELD.items():
        if isinstance(step, cls):
            return {name: getattr(step, field)}
    if isinstance(step, Each):
        return {"each": list(map(_encode_step, step.path))}
    if isinstance(step, Computed):
        return {"computed": [step.name, *step.given]}
    return {"dump": astuple(step)} if isinstance(step, Dump) else step


def _decode_ref(data: list[Any]) -> Ref:
    return Ref(data[0], tuple(map(_decode_step, data[1:])))


def _decode_step(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    ((name, held),) = data.items()
    if name == "dump":
        return Dump(*held)
    if name == "each":
        return Each(tuple(map(_decode_step, held)))
    if name == "computed":
        return Computed(held[0], tuple(held[1:]))
    return _CONSTANT[name] if name in _CONSTANT else _OF_ONE_FIELD[name][0](held)
