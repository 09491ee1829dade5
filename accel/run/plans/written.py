"""How trees of templates, references and steps are written in saved plans."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

from ...text.dumps import Dump
from ...text.functions import Computed
from ...text.relay import Relay
from ...text.steps import COUNT, ITEMS, STAR, STRIP, UNIQUE, Clip, Each, Edit, Escape, Extract, Head, Label, Verdict
from ...text.templates import Bound, Collect, Counter, Instead, Join, Ref, Spread, Taken, Talk, Template, Whole
from ...text.turns import CALLED, Turn
from ...text.values import Tree


def encode(tree: Tree) -> Any:
    if isinstance(tree, Template):
        return {"$text": [_encode_part(part) for part in tree.parts]}
    if isinstance(tree, Whole):
        return {"$whole": encode_ref(tree.ref)}
    if isinstance(tree, Spread):
        return {"$spread": encode(tree.leaf)}
    if isinstance(tree, Collect):
        distinct = list(tree.distinct) if tree.distinct is not None else None
        return {"$collect": [encode_ref(tree.ref), tree.bound, distinct, tree.limit]}
    if isinstance(tree, Talk):
        return {"$talk": [encode(tree.start), tree.after, *map(_encode_taken, tree.turns)]}
    if isinstance(tree, Relay):
        return {"$relay": [tree.first, *map(encode_ref, reversed(tree.refs))]}
    if isinstance(tree, dict):
        return {"$": {key: encode(value) for key, value in tree.items()}}
    return [encode(item) for item in tree] if isinstance(tree, list) else tree


def decode(data: Any) -> Tree:
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$text" in data:
        return Template(tuple(_decode_part(part) for part in data["$text"]))
    if "$whole" in data:
        return Whole(decode_ref(data["$whole"]))
    if "$spread" in data:
        return Spread(decode(data["$spread"]))
    if "$collect" in data:
        ref, bound, distinct, limit = data["$collect"]
        return Collect(decode_ref(ref), bound, tuple(distinct) if distinct is not None else None, limit)
    if "$talk" in data:
        start, after, *turns = data["$talk"]
        return Talk(decode(start), tuple(map(_decode_taken, turns)), after)
    if "$relay" in data:
        first, later, *start = data["$relay"]
        return Relay(decode_ref(start[0]) if start else None, decode_ref(later), first)
    return {key: decode(value) for key, value in data["$"].items()}


def _encode_taken(taken: Taken) -> list[Any]:
    turn = taken.turn
    style = astuple(turn.style) if turn.style is not None else None
    frames = [encode(dict(frame)) for frame in (turn.said, turn.told)]
    return [*frames, turn.named, style, *map(encode_ref, (taken.answer, *taken.results))]


def _decode_taken(data: list[Any]) -> Taken:
    said, told, named, style, *refs = data
    turn = Turn(decode(said), decode(told), named, Dump(*style) if style is not None else None)
    answer, *results = map(decode_ref, refs)
    return Taken(turn, answer, tuple(results))


def encode_most(most: int | Counter | Bound | None) -> Any:
    if isinstance(most, Counter):
        return {"counter": most.offset}
    return {"bound": encode_ref(most.ref), "more": most.more} if isinstance(most, Bound) else most


def decode_most(data: Any) -> Any:
    if isinstance(data, dict):
        return Counter(data["counter"]) if "counter" in data else Bound(decode_ref(data["bound"]), data["more"])
    return data


def _encode_part(part: Any) -> Any:
    if isinstance(part, Join):
        sep = [p if isinstance(p, str) else p.offset for p in part.sep]
        row = [_encode_part(inner) for inner in part.row]
        empty = astuple(part.empty) if part.empty is not None else None
        return {"join": row, "sep": sep, "limit": encode_most(part.limit), "bound": part.bound, "empty": empty}
    if isinstance(part, Counter):
        return {"counter": part.offset}
    return part if isinstance(part, str) else {"ref": encode_ref(part)}


def _decode_part(data: Any) -> Any:
    if isinstance(data, str):
        return data
    if "join" in data:
        sep = tuple(p if isinstance(p, str) else Counter(p) for p in data["sep"])
        first, *rest = map(_decode_part, data["join"])
        empty = Instead(*data["empty"]) if data["empty"] is not None else None
        return Join(first, sep, decode_most(data["limit"]), data["bound"], tuple(rest), empty)
    return Counter(data["counter"]) if "counter" in data else decode_ref(data["ref"])


def encode_ref(ref: Ref) -> list[Any]:
    return [ref.node, *map(encode_step, ref.path)]


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
    "head": (Head, "end"),
    "verdict": (Verdict, "word"),
}


def encode_step(step: Any) -> Any:
    for name, constant in _CONSTANT.items():
        if step is constant or step == constant:
            return {name: 1}
    for name, (cls, field) in _OF_ONE_FIELD.items():
        if isinstance(step, cls):
            return {name: getattr(step, field)}
    if isinstance(step, Each):
        return {"each": list(map(encode_step, step.path))}
    if isinstance(step, Computed):
        return {"computed": [step.name, *step.given]}
    if isinstance(step, Clip):
        return {"clip": [step.n, step.mark]}
    if isinstance(step, Label):
        return {"label": dict(step.said)}
    return {"dump": astuple(step)} if isinstance(step, Dump) else step


def decode_ref(data: list[Any]) -> Ref:
    return Ref(data[0], tuple(map(decode_step, data[1:])))


def decode_step(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    ((name, held),) = data.items()
    if name == "dump":
        return Dump(*held)
    if name == "each":
        return Each(tuple(map(decode_step, held)))
    if name == "clip":
        return Clip(*held)
    if name == "label":
        return Label(tuple(held.items()))
    if name == "computed":
        return Computed(held[0], tuple(held[1:]))
    return _CONSTANT[name] if name in _CONSTANT else _OF_ONE_FIELD[name][0](held)
