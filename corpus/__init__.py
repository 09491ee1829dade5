"""The programs that measurements run: ordinary code of LangGraph and LlamaIndex.

- `small`: some sixty programs in the styles of public LangGraph code.
- `applications`: ten public applications, rebuilt from their descriptions.
- `papers`: six programs that papers have measured, as one writes them first and with the concurrency written by hand.
- `batches`: twelve programs that papers on many inputs at once have measured, on the same data sets as `papers`.
- `served`: five programs as servers run them, on components that wait (`components`, `answers`).
- `factories`: what programs of `small` make anew with every call.

A program of `small` or `applications` is a module of its own. The first line of its docstring says what it is, and
stands in `bench/CORPUS.md`. It imports nothing of Accel, declares nothing, and has

- `build(parts)`: the compiled graph, made from a chat model, embeddings and a store (`Parts`);
- `INPUTS`: what it is asked, one after the other, twelve or more, all different;
- `turns(number)`, if a person has a say in between: what one of these inputs is, and what the graph goes on with after
  each pause, in a thread of its own;
- `DOCUMENTS`: what is in the store before the first request, if it searches;
- `ASYNC = True`, if its nodes are coroutines;
- `SOURCE`: which public application it rebuilds, and where that is.

To add one, put its module there and measure it: `python -m bench corpus --programs NAME --write`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

FAMILIES = ("small", "applications")


class Parts(Protocol):
    """What a program is built from: a chat model, embeddings, and a vector store of its own."""

    @property
    def llm(self) -> Any: ...

    @property
    def embeddings(self) -> Any: ...

    @property
    def store(self) -> Any: ...


@dataclass(frozen=True)
class Program:
    """A module of `small` or `applications`. `about`: what it is, in a sentence."""

    name: str
    about: str
    build: Callable[[Parts], Any]
    inputs: Sequence[Any]
    documents: Sequence[str]
    awaited: bool
    source: str
    turns: Callable[[int], Sequence[Any]]
    """What the graph is given for an input, one after the other: the input, and what it goes on with after pauses."""


def names() -> list[str]:
    """Of all programs, in the order of the alphabet."""
    return sorted(_families())


def programs(wanted: Sequence[str] = ()) -> list[Program]:
    """All of them, or the named ones. Raises ValueError for an unknown name."""
    families = _families()
    if unknown := [name for name in wanted if name not in families]:
        raise ValueError(f"There is no program {unknown[0]!r}; there are {', '.join(sorted(families))}.")
    return [_imported(families[name], name) for name in wanted or sorted(families)]


def _families() -> dict[str, str]:
    home = Path(__file__).parent
    return {module.name: family for family in FAMILIES for module in pkgutil.iter_modules([str(home / family)])}


def _imported(family: str, name: str) -> Program:
    module = import_module(f"corpus.{family}.{name}")
    return Program(
        name=name,
        about=(module.__doc__ or "").partition("\n")[0],
        build=module.build,
        inputs=module.INPUTS,
        documents=getattr(module, "DOCUMENTS", ()),
        awaited=getattr(module, "ASYNC", False),
        source=getattr(module, "SOURCE", ""),
        turns=getattr(module, "turns", lambda number: [module.INPUTS[number]]),
    )
