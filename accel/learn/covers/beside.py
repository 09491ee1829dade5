"""Short values that stand beside a longer one of the same element, row by row: ``- oak shelf: 12 h at 45 EUR``.

By themselves numbers and short words are found in any text. Where the elements of a list follow each other in a text,
and what stands between them differs from row to row just as other fields of these elements do, they are such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from ...text.paths import as_text, follow
from ...text.values import is_handed_on, leaves
from .cover import in_common, known, stands_alone
from .holes import ANY, Hole, Parts, Path, Row, Skeleton, filled
from .index import SHORTEST, Values

MAX_COLUMNS = 6
"""Values of a row."""
Fields = dict[Path, str]
"""What an element has, by its path in there."""
Run = tuple[int, Skeleton, Row, int]
"""How many holes, where the first one comes from, and the parts from each to the next."""


def beside(values: Values, parts: Parts, before: int) -> Parts:
    """`parts` with holes for such values, behind the longer one or before it."""
    at = 1
    while "beside" in values.readings and at < len(parts) - 2:
        count, skeleton, row, step = max(runs(parts, at), key=lambda run: run[0], default=(0, None, (), 0))
        if skeleton is not None and count > 1:
            rows = [_fields(values, skeleton, (*row[:-1], number)) for number in range(count)]
            for first, backwards in ((at + 1, False), (at - 1, True)):
                places = range(first, first + step * count, step)
                texts = [part for part in parts[first::step][:count] if isinstance(part, str)]
                split = _split(values, texts, rows, before, backwards)
                if split is not None:
                    instead = dict(zip(places, split, strict=True))
                    parts = [new for place, part in enumerate(parts) for new in instead.get(place, [part])]
                    at += len(split[0]) - 1 if backwards else 0
                    step += len(split[0]) - 1
        at += 2
    return parts


def runs(parts: Parts, at: int) -> Iterator[Run]:
    """How many of the holes from there on, each so many parts after the other, hold elements of a list, one after the
    other from the first one on; and where that one is."""
    first = parts[at]
    assert isinstance(first, Hole)
    for skeleton, origin in first.origins.items():
        for row in origin.rows if ANY in skeleton[1] else ():
            if row[-1] == 0:
                for step in range(2, 2 * MAX_COLUMNS + 1, 2):
                    further = enumerate(parts[at + step :: step], 1)
                    held = (isinstance(hole, Hole) and (*row[:-1], n) in hole.rows(skeleton) for n, hole in further)
                    yield 1 + sum(takewhile(bool, held)), skeleton, row, step


def _differ(texts: Sequence[str]) -> bool:
    """Whether what follows them is not the same text in all rows; behind the last one more may follow."""
    return any(text != texts[0] for text in texts[:-1]) or not texts[-1].startswith(texts[0])


def _fields(values: Values, skeleton: Skeleton, row: Row) -> Fields:
    node, path = skeleton
    last = len(path) - 1 - path[::-1].index(ANY)
    return dict(_short(follow(values.outputs[node], filled(path[: last + 1], row))))


def _short(element: object) -> Iterator[tuple[Path, str]]:
    for path, leaf in leaves(element) if isinstance(element, dict) else ():
        text = as_text(leaf) if not isinstance(leaf, bool) and not any(map(is_handed_on, path)) else None
        if text and len(text) < SHORTEST[0]:
            yield path, text


def _split(
    values: Values, texts: Sequence[str], rows: Sequence[Fields], before: int, backwards: bool
) -> list[Parts] | None:
    """Each text with holes where they differ as some field of their rows does; None if they don't. The last one goes
    on as it likes behind them; `backwards`: the first one before them."""
    if backwards:
        texts = [text[::-1] for text in reversed(texts)]
        rows = [{path: text[::-1] for path, text in row.items()} for row in reversed(rows)]
    done, split = [0] * len(texts), [Parts() for _ in texts]
    while True:
        rest = [text[at:] for text, at in zip(texts, done, strict=True)]
        if not _differ(rest):
            break
        same = min(in_common(text, 0, rest[0]) for text in rest)
        begins = range(same, max(-1, same - SHORTEST[0]), -1)  # values may begin alike
        found = ((at, path) for at in begins for path in rows[0] if all(_stand(rest, at, rows, path)))
        same, field = next((way for way in found if _reach(rows, way[1]) + way[0] > same), (0, None))
        if field is None:
            break
        for number, row in enumerate(rows):
            hole = known(values, row[field][::-1] if backwards else row[field], before)
            if hole is None:
                return None
            split[number] += [rest[number][:same], hole]
            done[number] += same + len(row[field])
    if not split[0]:
        return None
    whole: list[Parts] = [[*parts, text[at:]] for parts, text, at in zip(split, texts, done, strict=True)]
    return [_reversed(parts) for parts in reversed(whole)] if backwards else whole


def _reversed(parts: Parts) -> Parts:
    return [part[::-1] if isinstance(part, str) else part for part in reversed(parts)]


def _reach(rows: Sequence[Fields], field: Path) -> int:
    return max(len(row[field]) for row in rows)


def _stand(texts: Sequence[str], at: int, rows: Sequence[Fields], field: Path) -> Iterator[bool]:
    """Whether a row's text has this field of its element there."""
    for text, row in zip(texts, rows, strict=True):
        value = row.get(field, "")
        yield bool(value) and text.startswith(value, at) and stands_alone(text, at, at + len(value))
