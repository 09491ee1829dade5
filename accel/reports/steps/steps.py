"""A program as its user sees it: a step for every line that makes calls, and which steps it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...graph.ir import DECIDING, Graph, Node
from ...graph.rules import AT_ONCE, LATE
from ...parts.components import facts_of
from ...text.steps import Extract, Star
from ...text.templates import Ref
from ...trace.beside import BESIDE
from ...trace.sites import NOWHERE, function_of, where
from ..rows import place_of

if TYPE_CHECKING:
    from ...run.plans.plan import Plan

REQUEST = "input"
"""Stands for what a run is given."""
_NOUNS = {"lines": "line", "paragraphs": "paragraph", "numbered": "item", "json": "item"}


@dataclass(slots=True)
class Need:
    """What a step waits for in another one."""

    part: bool = False
    """A part of its answer is enough, while it writes the rest."""
    own: bool = False
    """Of its calls, the one that this call belongs to."""
    decides: bool = False
    """It decides whether the step is taken."""


@dataclass(slots=True)
class Step:
    """The calls of one line."""

    line: str
    """As in a report's rows."""
    name: str
    """The user's function, or the framework node."""
    place: str
    """File and line; empty where the framework itself calls."""
    what: str
    """Classes of components."""
    nodes: list[Node] = field(default_factory=list)
    needs: dict[str, Need] = field(default_factory=dict)
    """By line, or `REQUEST`."""
    once_per: str = ""
    """A noun: it is taken for each of them, on its own,"""
    of: str = ""
    """which are this line's, or the `REQUEST`'s; empty: of what a framework node had."""
    after_itself: bool = False
    """Its later calls need its earlier ones."""
    sometimes: bool = False
    spared: list[str] = field(default_factory=list)
    """Lines before it in the program that it does not wait for any more."""
    held: str = ""
    """Why its calls are not early; empty: they are."""

    @property
    def label(self) -> str:
        at = self.place or self.what
        return f"`{self.name}` ({at})" if at != self.name else f"`{self.name}`"


def steps_of(plan: Plan) -> list[Step]:
    """In the order of the program."""
    graph = plan.graph
    found: dict[str, Step] = {}
    for node in graph.nodes:
        if node.site:
            line = _line(node)
            step = found.setdefault(line, Step(line, name_of(node), _place(node), ""))
            step.nodes.append(node)
    for step in found.values():
        classes = [node.site.split("|")[2] for node in step.nodes if not node.schedule.stage_of]
        step.what = " + ".join(dict.fromkeys(cls.rpartition(".")[2] for cls in classes if cls))
        known = [node for node in step.nodes if node.evidence.confidence == "verified"]
        step.sometimes = not any(node.evidence.always for node in known or step.nodes)
        for node in known:
            _add_needs(step, node, plan, found)
        if len(step.needs) > 1 or not step.needs:
            step.needs.pop(REQUEST, None)
        step.needs = step.needs or {REQUEST: Need()}
        step.held = _held(plan, step, known)
    _spare(list(found.values()))
    return list(found.values())


def _line(node: Node) -> str:
    frame = where(node.site)
    if frame != NOWHERE:
        return frame
    return f"{node.site.split('|')[2].rpartition('.')[2]} in {node.within or 'the program'}"


def _place(node: Node) -> str:
    frame = where(node.site)
    return place_of(frame) if frame != NOWHERE else ""


def name_of(node: Node) -> str:
    """What a user calls its step: the function, or the framework node."""
    return function_of(where(node.site)) or node.within or node.site.split("|")[2].rpartition(".")[2] or node.op.name


def _add_needs(step: Step, node: Node, plan: Plan, found: dict[str, Step]) -> None:
    level, graph = node.level, plan.graph
    if level is not None and level.domain is not None:
        if not step.once_per:
            step.once_per, step.of = _once_per(level.domain, graph)
    for ref in node.taken():
        for line, need in _sources(ref, node, plan, found):
            if line == step.line:
                step.after_itself = True
                continue
            known = step.needs.setdefault(line, need)
            known.part, known.own = known.part and need.part, known.own and need.own
            known.decides = known.decides or need.decides


def _sources(ref: Ref, node: Node, plan: Plan, found: dict[str, Step]) -> Iterator[tuple[str, Need]]:
    """The lines whose answers a reference needs."""
    source = plan.graph.by_name[ref.node]
    decides = bool(ref.path) and isinstance(ref.path[-1], DECIDING)
    if source.gathers:
        for gathered in source.refs():
            yield from _sources(gathered, node, plan, found)
    elif source.site:
        levels = node.level.domain.stars if node.level is not None and node.level.domain is not None else 0
        own = source.many and isinstance(ref.path[0] if ref.path else None, Star) and ref.stars <= levels
        part = source.schedule.needs_partial and _of_item(ref) and _streams(plan, source)
        yield _line(source), Need(part=part, own=own, decides=decides)
    elif source.relay is not None:
        for handed in source.relay.refs:
            yield from _sources(handed, node, plan, found)
    elif ref.node in (REQUEST, BESIDE):
        yield REQUEST, Need(decides=decides)
    else:  # what enters or leaves a framework node
        name = ref.node.rpartition(".")[0]
        inside = [step.line for step in found.values() if any(_is_in(each.within, name) for each in step.nodes)]
        if ref.node.endswith(".out") and inside:
            yield from ((line, Need(decides=decides)) for line in inside)
        else:
            yield REQUEST, Need(decides=decides)


def _is_in(node: str, around: str) -> bool:
    """Whether a framework node is another one, or a part of it."""
    return node == around or node.startswith((f"{around}.", f"{around}:"))


def _of_item(ref: Ref) -> bool:
    return any(isinstance(step, Extract) for step in ref.path)


def _streams(plan: Plan, node: Node) -> bool:
    """Whether its component's answers are known piece by piece."""
    component, method = plan.used.at.get(node.site, (None, None))
    asked = method is not None and method.kind in ("stream", "astream")
    return asked or (component is not None and bool(facts_of(component).streams_equal))


def _once_per(domain: Ref, graph: Graph) -> tuple[str, str]:
    """Once per line, and of which line's answer."""
    source = graph.by_name[domain.node]
    if source.relay is not None:
        return "round", ""
    if not source.site:
        return "item", REQUEST if domain.node == REQUEST else ""
    extract = next((step.name for step in domain.path if isinstance(step, Extract)), None)
    if extract is not None:
        return _NOUNS.get(extract, "item"), _line(source)
    if source.many and domain.path and isinstance(domain.path[0], Star) and domain.stars == 1:
        return "call", _line(source)
    return "document" if source.op.name in ("searching", "reranking") else "item", _line(source)


def _held(plan: Plan, step: Step, known: list[Node]) -> str:
    """Why none of its calls is early, if none is."""
    reasons = []
    for node in known or step.nodes:
        held = plan.reasons.get(node.name)
        held = held if held is None or held.rule is not LATE else None
        if not node.op.issuable:
            return "it may change something, so the program alone makes it"
        if node.evidence.confidence != "verified":
            reasons.append(str(held or node.evidence.reason or "not seen in two runs yet"))
        elif node.evidence.at_once:
            reasons.append(str(AT_ONCE()))
        elif held is not None:
            reasons.append(str(held))
        else:
            return ""
    return reasons[0] if reasons else "nothing is known of it yet"


def needed(step: Step, by_line: dict[str, Step]) -> set[str]:
    """All lines that it waits for, directly or by way of others."""
    seen: set[str] = set()
    coming = list(step.needs)
    while coming:
        line = coming.pop()
        if line not in seen and line in by_line:
            seen.add(line)
            coming += by_line[line].needs
    return seen


def _spare(steps: list[Step]) -> None:
    by_line = {step.line: step for step in steps}
    for number, step in enumerate(steps):
        if not step.held:
            before = needed(step, by_line)
            step.spared = [other.line for other in steps[:number] if other.line not in before]
