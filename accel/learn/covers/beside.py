"""Short values that stand beside a longer one of the same element, row by row: ``- oak shelf: 12 h at 45 EUR``.

By themselves numbers and short words are found in any text. Where the elements of a list follow each other in a text,
and what stands between them differs from row to row just as other fields of these elements do, they are such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from ...text.evaluate import as_text, follow
from ...text.values import is_handed_on, leaves
from .cover import in_common, known, stands_alone
from .holes import ANY, Hole, Parts, Path, Row, Skeleton, filled
from .index import SHORTEST, Values

Fields = dict[Path, str]
"""What an element has, by its path in there."""


def beside(values: Values, parts: Parts, before: int) -> Parts:
    """`parts` with holes for such values."""
    at = 1
    while "beside" in values.readings and at < len(parts) - 2:
        count, skeleton, row = max(_runs(parts, at), key=lambda run: run[0], default=(0, None, ()))
        texts = [part for part in parts[at + 1 : at + 2 * count : 2] if isinstance(part, str)]
        if skeleton is not None and count > 1 and _differ(texts):
            rows = [_fields(values, skeleton, (*row[:-1], number)) for number in range(count)]
            split = _split(values, texts, rows, before)
            if split is not None:
                inside = [part for hole, text in zip(parts[at::2], split, strict=False) for part in (hole, *text)]
                parts = [*parts[:at], *inside, *parts[at + 2 * count :]]
                at += len(inside) - 2
        at += 2
    return parts


def _runs(parts: Parts, at: int) -> Iterator[tuple[int, Skeleton, Row]]:
    """How many of the holes from there on hold elements of a list, one after the other from the first one on; and where
    that one is. Only of lists of which the next hole holds something, too."""
    first, second = parts[at], parts[at + 2]
    assert isinstance(first, Hole)
    follows = second.origins if isinstance(second, Hole) else {}
    for skeleton, origin in first.origins.items() if follows else ():
        for row in origin.rows if ANY in skeleton[1] and skeleton in follows else ():
            if row[-1] == 0:
                further = enumerate(parts[at + 2 :: 2], 1)
                held = (isinstance(hole, Hole) and (*row[:-1], n) in hole.rows(skeleton) for n, hole in further)
                yield 1 + sum(takewhile(bool, held)), skeleton, row


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


def _split(values: Values, texts: Sequence[str], rows: Sequence[Fields], before: int) -> list[Parts] | None:
    """Each text with holes where they differ as some field of their rows does; None if they don't. The last one goes
    on as it likes behind them."""
    done, split = [0] * len(texts), [Parts() for _ in texts]
    while True:
        rest = [text[at:] for text, at in zip(texts, done, strict=True)]
        same = min(in_common(text, 0, rest[0]) for text in rest)
        if not _differ(rest):
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
