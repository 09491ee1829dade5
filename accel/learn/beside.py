"""Short values that stand beside a longer one of the same element, row by row: ``- oak shelf: 12 h at 45 EUR``.

By themselves numbers and short words are found in any text. Where the elements of a list follow each other in a text,
and what stands between them differs from row to row just as other fields of these elements do, they are such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..text.evaluate import as_text, follow
from ..text.values import is_handed_on, leaves
from .cover import in_common, known, stands_alone
from .holes import ANY, Hole, Parts, Path, filled
from .index import SHORTEST, Values

Fields = dict[Path, str]
"""What an element has, by its path in there."""


def beside(values: Values, parts: Parts, before: int) -> Parts:
    """`parts` with holes for such values."""
    at = 1
    while "beside" in values.readings and at < len(parts) - 2:
        rows = max(_rows(values, parts, at), key=len, default=[])
        texts = [part for part in parts[at + 1 : at + 2 * len(rows) : 2] if isinstance(part, str)]
        split = _split(values, texts, rows, before) if len(rows) > 1 else None
        if split is not None:
            filled_in = [part for hole, text in zip(parts[at::2], split, strict=False) for part in (hole, *text)]
            parts = [*parts[:at], *filled_in, *parts[at + 2 * len(rows) :]]
            at = len(parts[:at]) + len(filled_in)
        at += 2
    return parts


def _rows(values: Values, parts: Parts, at: int) -> Iterator[list[Fields]]:
    """The elements of which the holes from there on hold one after the other, from the first one of a list on."""
    first = parts[at]
    assert isinstance(first, Hole)
    for (node, path), origin in first.origins.items():
        for row in origin.rows if ANY in path else ():
            if row[-1] != 0:
                continue
            found: list[Fields] = []
            for place, hole in enumerate(parts[at::2]):
                here = (*row[:-1], place)
                if not isinstance(hole, Hole) or here not in hole.rows((node, path)):
                    break
                last = len(path) - 1 - path[::-1].index(ANY)
                element = follow(values.outputs[node], filled(path[: last + 1], here))
                found.append({inside: text for inside, text in _short(element)})
            yield found


def _short(element: object) -> Iterator[tuple[Path, str]]:
    for path, leaf in leaves(element) if isinstance(element, dict) else ():
        text = as_text(leaf) if not isinstance(leaf, bool) and not any(map(is_handed_on, path)) else None
        if text and len(text) < SHORTEST[0]:
            yield path, text


def _split(values: Values, texts: Sequence[str], rows: Sequence[Fields], before: int) -> list[Parts] | None:
    """Each text with holes where they differ as some field of their rows does; None if they don't. The last one goes
    on as it likes behind them."""
    done, split = [0] * len(texts), [Parts() for _ in texts]
    while True:
        rest = [text[at:] for text, at in zip(texts, done, strict=True)]
        same = min(in_common(text, 0, rest[0]) for text in rest)
        if all(text == rest[0] for text in rest[:-1]) and rest[-1].startswith(rest[0]):
            break
        while same and rest[0][same - 1].isalnum():
            same -= 1
        field = next((path for path in rows[0] if all(_stand(rest, same, rows, path))), None)
        if field is None:
            break
        for number, row in enumerate(rows):
            hole = known(values, row[field], before)
            if hole is None:
                return None
            split[number] += [rest[number][:same], hole]
            done[number] += same + len(row[field])
    if not split[0]:
        return None
    return [[*parts, text[at:]] for parts, text, at in zip(split, texts, done, strict=True)]


def _stand(texts: Sequence[str], at: int, rows: Sequence[Fields], field: Path) -> Iterator[bool]:
    """Whether a row's text has this field of its element there."""
    for text, row in zip(texts, rows, strict=True):
        value = row.get(field, "")
        yield bool(value) and text.startswith(value, at) and stands_alone(text, at, at + len(value))
