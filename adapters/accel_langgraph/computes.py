"""What LangChain computes between two calls, as steps: messages trimmed, filtered, merged and written as text, and
rankings fused.

Messages are built again and given to LangChain's own functions, unless a class of the program's is among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any

from langchain_core.messages import (
    convert_to_openai_messages,
    filter_messages,
    get_buffer_string,
    merge_message_runs,
    trim_messages,
)

from accel.text.constants import Constants
from accel.text.functions import Function, Given
from accel.text.values import Opaque, Tree, leaves, snapshot, thaw

LARGEST = 400
"""Messages of a conversation that is looked at."""
_TAG = "message"
_OWN = "langchain_core.messages."
# LangChain looks at the signature of a counter each time, which takes long for a built-in function.
_COUNTERS: dict[str, Any] = {"len": lambda messages: len(messages), "approximate": "approximate"}
_LAST = tuple(
    (start, end, system)
    for start, end in (("", ""), ("human", ""), ("human", "human,tool"), ("human", "human"))
    for system in (0, 1)
)
MOST_TRIMS = 120
"""Ways to trim one list that are tried."""
_RETRIEVERS = ("langchain.retrievers.", "langchain_classic.retrievers.")
_SEPARATORS = ("\n", "\n\n", " ", "")
_SPEAKERS = (("Human", "AI"), ("User", "Assistant"), ("User", "AI"), ("user", "assistant"))
_built: tuple[Any, list[Any]] = ([], [])
"""The last messages that were built, and from what: one list is tried in many ways."""


def _messages(items: Sequence[Tree]) -> list[Any]:
    """Raises ValueError for anything but messages of LangChain's own classes."""
    global _built
    trees, built = _built
    if trees is not items:
        if not _are_messages(items) or any(isinstance(leaf, Opaque) for _, leaf in leaves(list(items))):
            raise ValueError("no messages of LangChain's")
        built = [thaw(item) for item in items]
        _built = items, built
    return list(built)


def _are_messages(items: Any) -> bool:
    return (
        isinstance(items, list)
        and 0 < len(items) <= LARGEST
        and all(isinstance(item, dict) and str(item.get(_TAG)).startswith(_OWN) for item in items)
    )


def _shown(messages: Iterable[Any]) -> Tree:
    return [snapshot(message) for message in messages]


def _trimmed(items: Sequence[Tree], n: int, counter: str, strategy: str, start: str, end: str, system: int) -> Tree:
    kept = trim_messages(
        _messages(items),
        max_tokens=n,
        token_counter=_COUNTERS[counter],
        strategy="first" if strategy == "first" else "last",
        start_on=start or None,
        end_on=end.split(",") if end else None,
        include_system=bool(system),
    )
    return _shown(kept)


def _trims(items: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    return islice(_all_trims(items, constants), MOST_TRIMS)


def _all_trims(items: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    for counter in _COUNTERS if _are_messages(items) else ():
        for n in constants.whole:
            if n > (1 if counter == "len" else 8):
                yield n, counter, "first", "", "", 0
                yield from ((n, counter, "last", *options) for options in _LAST)


def _filtered(items: Sequence[Tree], include: str, exclude: str, without_calls: int) -> Tree:
    kept = filter_messages(
        _messages(items),
        include_types=include.split(",") if include else None,
        exclude_types=exclude.split(",") if exclude else None,
        exclude_tool_calls=bool(without_calls) or None,
    )
    return _shown(kept)


def _filters(items: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    kinds = ("human", "ai", "system", "tool") if _are_messages(items) else ()
    for kind in kinds:
        yield from ((kind, "", 0), ("", kind, 0))
    for pair in combinations(kinds, 2):
        yield from ((",".join(pair), "", 0), ("", ",".join(pair), 0))
    if kinds:
        yield "", "", 1


def _merged(items: Sequence[Tree], separator: str) -> Tree:
    return _shown(merge_message_runs(_messages(items), chunk_separator=separator))


def _written(items: Sequence[Tree], human: str, ai: str, separator: str, form: str) -> Tree:
    return get_buffer_string(
        _messages(items), human, ai, message_separator=separator, format="xml" if form == "xml" else "prefix"
    )


def _speakers(items: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    if _are_messages(items):
        yield from ((*pair, separator, "prefix") for pair in _SPEAKERS for separator in _SEPARATORS[:2])
        yield "Human", "AI", "\n", "xml"


def _of_messages(*given: tuple[Given, ...]) -> Callable[[Any, Constants], Iterable[tuple[Given, ...]]]:
    return lambda items, constants: given if _are_messages(items) else ()


def _fused(lists: Sequence[Sequence[Tree]], c: int, *weights: float) -> Tree:
    """As `EnsembleRetriever` ranks; without weights all lists have the same."""
    shares = weights or (1 / len(lists),) * len(lists)
    scores: dict[str, float] = defaultdict(float)
    first: dict[str, Tree] = {}
    for documents, weight in zip(lists, shares, strict=True):
        for rank, document in enumerate(documents, 1):
            text = document["page_content"]
            scores[text] += weight / (rank + c)
            first.setdefault(text, document)
    return [first[text] for text in sorted(first, key=scores.__getitem__, reverse=True)]


def _weights(lists: Any, constants: Constants) -> Iterator[tuple[Given, ...]]:
    if not _are_rankings(lists):
        return
    yield (60,)
    if len(lists) == 2:
        yield from ((60, n, round(1 - n, 4)) for n in constants.numbers if 0 < n < 1)


def set_to(value: Any) -> tuple[float, ...] | None:
    """The numbers that an object of LangChain's computes with, which are the program's."""
    cls = type(value)  # of a package that may be missing
    if cls.__name__ != "EnsembleRetriever" or not cls.__module__.startswith(_RETRIEVERS):
        return None
    return tuple(value.weights)


def _are_rankings(lists: Any) -> bool:
    return isinstance(lists, list) and all(
        isinstance(documents, list)
        and all(isinstance(document, dict) and "document" in document for document in documents)
        for documents in lists
    )


COMPUTES: dict[str, Function] = {
    "trim_messages": Function(_trimmed, "messages that fit, from the end or the beginning", _trims),
    "filter_messages": Function(_filtered, "messages of some kinds", _filters),
    "merge_message_runs": Function(
        _merged, "messages of one kind in a row as one", _of_messages(*((each,) for each in _SEPARATORS))
    ),
    "get_buffer_string": Function(_written, "messages as text", _speakers),
    "convert_to_openai_messages": Function(
        lambda items, form: convert_to_openai_messages(_messages(items), text_format=form),
        "messages as OpenAI takes them",
        _of_messages(("string",), ("block",)),
    ),
    "weighted_reciprocal_rank": Function(_fused, "documents that several retrievers found, in one order", _weights),
}
"""By the names of LangChain's own functions."""
