"""Agents' rounds: the calls of tools that an answer asks for, and the call that is told their results.

A model's next call has the messages of the one before, its answer, and a message for each result (`Turn`); a tool is
given what the answer says (`CALLS`). So both are read off the calls themselves, whatever the lengths of the lists are,
and round by round they are nodes by one rule: two runs with different inputs that show a rule in any of its rounds
verify it for all that were seen.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from ..graph.ir import Evidence, Level, Node, When
from ..graph.ops import OPS
from ..text.dumps import Dump, styles_of
from ..text.paths import UNKNOWN, step_into
from ..text.steps import STAR
from ..text.templates import Ref, Taken, Talk, Whole
from ..text.turns import ANSWERS, ARGS, CALLED, CALLS, CONTENT, ID, MESSAGES, NAME, NONE, SOME, Turn
from ..text.values import Tree, freeze, is_class_name, leaves, same
from ..trace.record import CallRecord
from .covers.foreign import literals
from .covers.holes import Path
from .judging import judged
from .view import Fit, View

MAX_BEFORE = 8
"""Earlier answers that a call may belong to."""


@dataclass(frozen=True, slots=True)
class Round:
    """A node that explains a call by the answer before it."""

    node: Node
    fits: list[Fit]


class Rounds:
    """What was learnt of rounds so far, in one lesson."""

    def __init__(self, views: Sequence[View], nodes: list[Node]) -> None:
        self._views = views
        self._nodes = nodes
        self._shown: dict[Hashable, set[int]] = {}
        """By rule, the runs with different inputs that showed it."""
        self._styles: dict[Hashable, Dump | None] = {}
        """By rule, how results are printed that are no texts."""
        self._answers: list[list[tuple[CallRecord, Node]]] = [[] for _ in views]
        """By view, the calls with one answer each that nodes explain, and which."""

    def note(self, node: Node, fits: Sequence[Fit]) -> None:
        """A node was learnt."""
        if node.op.streams and not node.many and node.predictable:
            for known, fit in zip(self._answers, fits, strict=True):
                known += ((call, node) for call in fit.calls)

    def explain(self, view: View, call: CallRecord, name: str) -> Round | None:
        """A node of this name for the call, by one of the last answers before it."""
        before = [known for known in self._answers[self._views.index(view)] if _is_over(known[0], call)]
        propose = self._next_asked if OPS[call.op].streams else self._called
        for answered, node in sorted(before, key=lambda known: -known[0].start)[:MAX_BEFORE]:
            for found, rule in propose(view, call, answered, node):
                explained = self._fitting(replace(found, name=name), call, rule)
                if explained is not None:
                    return explained
        return None

    def ended(self, node: Node, fits: list[Fit]) -> Round:
        """The node as one that uses what an agent said at its end: where it goes on instead, another call is made."""
        agents = {known.site for answers in self._answers for call, known in answers if CALLED.of(call.output) == SOME}
        sites = {known.name: known.site for answers in self._answers for _, known in answers}
        used = dict.fromkeys(ref.node for ref in node.refs() if ref.path[:1] == (CONTENT,))
        last = [name for name in used if sites.get(name) in agents and sites[name] != node.site]
        made = [view for view, fit in zip(self._views, fits, strict=True) if fit.calls]
        last = [name for name in last if all(CALLED.of(view.values.value(name)) == NONE for view in made)]
        if not last or node.level is not None:
            return Round(node, fits)
        ends = (When(Ref(name, (CALLED,)), frozenset((NONE,)), only=True) for name in last)
        settled = replace(node, when=(*node.when, *ends))
        fits = [view.fit(settled) for view in self._views]
        return Round(judged(settled, fits, self._views), fits)

    def _fitting(self, node: Node, call: CallRecord, rule: Hashable) -> Round | None:
        """The node with its evidence, if it explains this call and no run did otherwise."""
        fits = [view.fit(node) for view in self._views]
        if any(fit.skips or fit.partial for fit in fits) or not any(call in fit.calls for fit in fits):
            return None
        shown = self._shown.setdefault(rule, set())
        shown |= {view.witness for view, fit in zip(self._views, fits, strict=True) if fit.calls}
        node = judged(node, fits, self._views)
        if node.evidence.confidence != "verified" and len(shown) > 1:
            node = node.proven(confidence="verified", reason="")
        return Round(node, fits) if node.evidence.always else None

    # --- calls of tools

    def _called(
        self, view: View, call: CallRecord, answered: CallRecord, node: Node
    ) -> Iterator[tuple[Node, Hashable]]:
        """A tool's call as every call of its name that the answer holds."""
        offered = set(literals(node.input))
        calls = Ref(node.name, (CALLS, STAR))
        for asked in _calls_of(answered.output):
            if asked[NAME] not in offered:
                continue  # that name is none that the program always says
            when = When(replace(calls, path=(*calls.path, CALLED)), frozenset((asked[NAME],)), only=True)
            args = replace(calls, path=(*calls.path, ARGS))
            rules = _made_of(call.input, asked[ARGS], Ref(""))
            for tree, rule in zip(_made_of(call.input, asked[ARGS], args), rules, strict=True):
                tree, rule = (_with_given(each, view, call) for each in (tree, rule))
                if _is_known(tree, view, call):
                    continue
                level = Level(calls, sparse=True)
                found = Node("", OPS[call.op], tree, call.site, call.within, call.family, level, True, (when,))
                yield found, (call.site, asked[NAME], freeze(rule))

    # --- the model's next call

    def _next_asked(
        self, view: View, call: CallRecord, answered: CallRecord, node: Node
    ) -> Iterator[tuple[Node, Hashable]]:
        """A model's call as the one that was answered, and a turn more."""
        if (call.site, call.family, call.identity) != (answered.site, answered.family, answered.identity):
            return
        if not isinstance(call.input, dict) or not isinstance(answered.input, dict):
            return
        now, before = call.input.get(MESSAGES), answered.input.get(MESSAGES)
        calls = list(_calls_of(answered.output))
        if not calls or not isinstance(now, list) or not isinstance(before, list):
            return
        added = len(calls) + 1
        if len(now) != len(before) + added or not _equal_but(call.input, answered.input, MESSAGES):
            return
        first = sum(1 for _ in takewhile(lambda both: same(*both), zip(before, now, strict=False)))
        after = len(before) - first
        if any(not same(*both) for both in zip(before[first:], now[first + added :], strict=True)):
            return
        held = tuple(
            one.name
            for one in self._nodes
            if one.level is not None and one.level.domain == Ref(node.name, (CALLS, STAR))
        )
        lists = [view.values.value(name) for name in held]
        results = [
            next((one for one in (step_into(of, at) for of in lists) if one is not UNKNOWN), UNKNOWN)
            for at in range(len(calls))
        ]
        turn = _turn(now[first : first + added], answered.output, results)
        if turn is None or _is_known([dict(turn.said), dict(turn.told)], view, call):
            return
        rule = (call.site, freeze(dict(turn.said)), freeze(dict(turn.told)), turn.named, after)
        turn = replace(turn, style=turn.style or self._styles.get(rule))
        self._styles[rule] = turn.style
        earlier = node.input[MESSAGES] if isinstance(node.input, dict) else None
        taken = Taken(turn, Ref(node.name), tuple(Ref(name, (STAR,)) for name in held))
        if isinstance(earlier, Talk):
            if earlier.after != after:
                return
            talk = replace(earlier, turns=(*earlier.turns, taken))
        else:
            talk = Talk(earlier, (taken,), after)
        when = When(Ref(node.name, (CALLED,)), frozenset((SOME,)), only=True)
        found = replace(node, input={**node.input, MESSAGES: talk}, when=(when,), evidence=Evidence(), first=None)
        yield found, rule


def _is_over(answered: CallRecord, call: CallRecord) -> bool:
    return answered.ok and answered.end is not None and answered.end < call.start


def _calls_of(answer: Tree) -> Iterator[dict[str, Any]]:
    held = answer.get(CALLS) if isinstance(answer, dict) else None
    for asked in held if isinstance(held, list) else ():
        if isinstance(asked, dict) and isinstance(asked.get(NAME), str) and isinstance(asked.get(ARGS), dict):
            yield asked


def _equal_but(tree: Tree, other: Tree, key: str) -> bool:
    return same({**tree, key: None}, {**other, key: None})


def _made_of(tree: Tree, args: dict[str, Tree], ref: Ref) -> list[Tree]:
    """What a tool was given, made of what the answer says: all of it, as it stands, or what it is given by name."""

    def visit(tree: Tree, whole: bool) -> Tree:
        if isinstance(tree, dict):
            if whole and args and same(tree, args):
                return Whole(ref)
            return {key: part(key, value, whole) for key, value in tree.items()}
        return [part(None, value, whole) for value in tree] if isinstance(tree, list) else tree

    def part(key: str | None, value: Tree, whole: bool) -> Tree:
        named = [key] if key is not None else list(args)
        taken = next((name for name in named if name in args and same(args[name], value)), None)
        return Whole(replace(ref, path=(*ref.path, taken))) if taken is not None else visit(value, whole)

    found = visit(tree, True), visit(tree, False)
    return list(found) if found[0] != found[1] else [found[0]]


def _with_given(tree: Tree, view: View, call: CallRecord) -> Tree:
    """What stands in the run's input, as that: a program may give tools more than the model says (who asks)."""

    def visit(tree: Tree) -> Tree:
        if isinstance(tree, dict):
            return {key: value if is_class_name(str(key), value) else visit(value) for key, value in tree.items()}
        if isinstance(tree, list):
            return [visit(value) for value in tree]
        if not isinstance(tree, str | int | float) or isinstance(tree, bool):
            return tree
        path = next((path for path, value in leaves(view.trace.input) if same(value, tree)), None)
        return tree if path is None else Whole(Ref("input", path))

    return visit(tree)


def _is_known(tree: Tree, view: View, call: CallRecord) -> bool:
    """Whether a text in it was known under another name before: then it is somebody's, and no literal. What nodes are
    called the program says itself."""
    nodes = {name for visit in view.trace.visits for name in visit.node.split(":")}

    def somebodys(key: Any, value: Tree) -> bool:
        if isinstance(value, dict | list):
            return any(somebodys(*each) for each in (value.items() if isinstance(value, dict) else enumerate(value)))
        if not isinstance(value, str) or value in nodes or is_class_name(str(key), value):
            return False
        return any(_name(source.path) != key for source in view.values.seen(value, call.start))

    return somebodys(None, tree)


def _name(path: Path) -> str | None:
    return next((step for step in reversed(path) if isinstance(step, str)), None)


def _turn(added: list[Tree], answer: Tree, results: list[Tree]) -> Turn | None:
    """How these messages are an answer and the results of its calls; None if they are something else."""
    said, *told = added
    if not all(isinstance(message, dict) for message in added) or not answer.keys() <= said.keys():
        return None
    frame: dict[str, Tree] | None = None
    named, style = False, None
    for message, asked, result in zip(told, _calls_of(answer), results, strict=True):
        content = message.get(CONTENT)
        if message.get(ANSWERS) != asked.get(ID) or result is UNKNOWN:
            return None
        if not same(content, result):
            styles = styles_of(content) if isinstance(content, str) and isinstance(result, list | dict) else ()
            style = next((one for one in styles if one.shown(result) == content), None)
            if style is None:
                return None
        named = message.get(NAME) == asked[NAME]
        rest = {
            key: value for key, value in message.items() if key not in (CONTENT, ANSWERS, *([NAME] if named else ()))
        }
        if frame is not None and not same(frame, rest):
            return None
        frame = rest
    beside = {key: value for key, value in said.items() if key not in answer or not same(value, answer[key])}
    return Turn(beside, frame or {}, named, style) if beside.keys().isdisjoint((CONTENT, CALLS)) else None
