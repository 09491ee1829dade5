"""A program's steps in words, and as a flowchart of Mermaid's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..text import folded
from .steps import REQUEST, Need, Step

MOST_NAMED = 3
"""Steps that a sentence names one by one."""
NOTHING = "Nothing is known yet: Accel learns from two requests with different inputs (of a loop, from two rounds)."


def in_words(steps: Sequence[Step], source: str) -> str:
    if not steps:
        return NOTHING
    by_line = {step.line: step for step in steps}
    lines = [f"What waits for what, {source}:", ""]
    for number, step in enumerate(steps, 1):
        lines.append(f"{number:3}. {_sentence(step, by_line)}")
    return "\n".join(part for line in lines for part in folded(line, 5))


def _sentence(step: Step, by_line: dict[str, Step]) -> str:
    what = f" asks {step.what}" if step.what and step.place else " makes its call"
    sure = ", if the program gets there" if step.sometimes else ""
    if step.held:
        return f"{step.label}{what} when the program does{sure}, as before: {step.held}."
    said = f"{step.label} starts {_when(step, by_line)}{sure}"
    if step.once_per:
        owner = f" of {by_line[step.of].label}" if step.of in by_line and step.of not in step.needs else ""
        said += f", once per {step.once_per}{owner or ' of the request' * (step.of == REQUEST)}"
    if step.after_itself:
        said += "; its later calls start as soon as its earlier ones have answered"
    spared = [by_line[line].label for line in step.spared] + ["its other calls"] * bool(
        step.once_per and not step.after_itself
    )
    if spared:
        said += f"; it no longer waits for {_named(spared)}"
    return said + "."


def _when(step: Step, by_line: dict[str, Step]) -> str:
    """What has to be there."""
    needs = [(by_line[line].label, need) for line, need in step.needs.items() if line != REQUEST]
    whole = [label for label, need in needs if not _is_partial(need)]
    part = [label for label, need in needs if need.part and not need.own]
    own = [label for label, need in needs if need.own]
    item = step.once_per if step.once_per not in ("", "call") else "item"
    if not needs:
        return "with the request"
    if not part and not own:
        return f"as soon as {_named(whole)} {'has' if len(whole) == 1 else 'have'} answered"
    if not whole and not own:
        return f"while {_named(part)} still writes, as soon as its own {item} is there"
    if not whole and not part:
        return f"as soon as the call of {_named(own)} that it belongs to has answered"
    has = [f"the answer of {label}" for label in whole] + [f"its own {item} of {label}" for label in part]
    return f"as soon as it has {_named(has + [f'the answer to its own call of {label}' for label in own])}"


def _is_partial(need: Need) -> bool:
    return need.part or need.own


def _named(labels: Sequence[str]) -> str:
    if len(labels) > MOST_NAMED + 1:
        labels = [*labels[:MOST_NAMED], f"{len(labels) - MOST_NAMED} more"]
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"


# --- Mermaid


def mermaid(steps: Sequence[Step]) -> str:
    """Solid arrows: waits for the answer; thick: an item of it is enough; dotted boxes: not early."""
    names = {REQUEST: "request"} | {step.line: f"step{number}" for number, step in enumerate(steps, 1)}
    lines = ["flowchart TD", '    request(["the request"])']
    for step in steps:
        label = "<br/>".join(_escaped(part) for part in (step.name, step.place, step.what) if part)
        lines.append(f'    {names[step.line]}["{label}"]')
    for step in steps:
        for line, need in step.needs.items() if step.needs else ((REQUEST, Need()),):
            said = edge_label(step, line, need)
            arrow = "==>" if _is_partial(need) else "-->"
            lines.append(f"    {names[line]} {arrow}{f'|{_quoted(said)}|' if said else ''} {names[step.line]}")
    held = [names[step.line] for step in steps if step.held]
    if held:
        lines += ["    classDef held stroke-dasharray: 4 3", f"    class {','.join(held)} held"]
    return "\n".join(lines) + "\n"


def edge_label(step: Step, line: str, need: Need) -> str:
    """What is said along an arrow."""
    if need.decides:
        return "decides"
    if need.own:
        return "each its own"
    if need.part:
        return f"per {step.once_per if step.once_per not in ('', 'call') else 'item'}, while it writes"
    return ""


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """What Mermaid reads as a text: quotes, brackets of tags and backticks by number."""
    return re.sub(r'["<>`#&;\\]', lambda found: f"#{ord(found[0])};", text)
