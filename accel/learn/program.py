"""What a program says by itself, and whether it still does: only such text is a lesson's own (invariants 6 and 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from ..graph.ir import Node
from ..parts.program.places import Place
from ..parts.program.said import Column, Said, Standing
from ..parts.program.wording import FEWEST_WORDS, Texts, shared, whole_in
from ..parts.references import References
from ..text.constants import Table
from .covers.cover import stands_alone
from .covers.foreign import said_by
from .memory import asked_for

LOOKED_AGAIN = 32
"""After so many runs a text that stood nowhere is looked for again."""
MAX_NODES = 1_024


@dataclass(frozen=True, slots=True)
class Own:
    """How much of a node's literals is the program's."""

    foreign: tuple[str, ...]
    """What of their lines is somebody's, or one of several texts that only the program chooses from."""
    stands: tuple[tuple[str, Place], ...]
    """Where the others stand, other than in code."""
    held: tuple[tuple[str, Place], ...] = ()
    """Where it stood when it was learnt, as far as variables and attributes held what is somebody's."""


class Program:
    """Looked up off the program's path, and again after a lesson that holds something else."""

    def __init__(self) -> None:
        self._references = References()
        self._ran = False
        self._standing = Standing()
        self._now: Said | None = None
        """What it says, as the lesson under way has looked it up; see `accel.parts.program.texts`."""
        self._found: dict[str, Place | None] = {}
        self._texts: Texts | None = None
        self._chosen: Texts | None = None
        """Without what is one of several,"""
        self._alone: Texts | None = None
        """and without what is gone through as a whole."""
        self._stale = True
        """Since it was looked up a run has taught something."""
        self._whole: dict[str, Place] = {}
        """Texts of lists and dicts that every run goes through, one after the other: it chooses none of them."""
        self._lost: Set[str] = frozenset()
        """Those that were among them before the last lesson."""
        self._rows: set[tuple[str, str]] = set()
        """Entries of dicts that stood in one of the lessons before."""
        self._nodes: dict[object, Own] = {}
        """By what nodes ask for."""
        self._gone: dict[object, int] = {}
        """Nodes of which a text stands no longer, and how many more runs take that for granted."""

    def look(self, references: References, saved: Sequence[Node] = ()) -> Set[str]:
        """The program is accelerated, and has not run yet: what it holds is its own. Later it may be a run's. `saved`:
        nodes of a saved plan, which the first run may follow; given back are those that hold words it doesn't say."""
        if self._ran:
            return frozenset()
        self._standing |= references.standing()
        self._references, self._now = references, None
        self._texts, self._alone, self._stale = None, None, True  # another one of its scope may say something else
        self.note(saved)
        return frozenset(node.name for node in saved if node.predictable and self.lacks(node))

    def ran(self, references: References) -> None:
        """A run of the program is over, whose texts can be found from here."""
        self._ran = True
        self._references, self._now = references, None
        self._gone = {asked: left - 1 for asked, left in self._gone.items() if left > 1}

    def changed(self) -> None:
        """Something new was learnt, maybe because the program is another one now."""
        self._stale = True

    def lacks(self, node: Node) -> bool:
        """Whether a literal of this node's holds words that the program doesn't."""
        texts = list(said_by(node))
        if self._texts is not None and all(map(self._texts.cover, texts)):
            return False
        if self._stale:
            self._stale = False
            self._look()
        return self._texts is None or not all(map(self._texts.cover, texts))

    def holds_others(self, node: Node) -> bool:
        """Whether its literals hold words that the program doesn't say, or that are one of several which it says."""
        return self.lacks(node) or bool(self.foreign(node))

    def loops(self, nodes: Sequence[Node]) -> None:
        """These are the nodes now. If every run asks with all texts of a list or dict in its order, each of them is the
        program's as if it stood in its code."""
        made = [node for node in nodes if node.predictable and node.evidence.always and not node.when]
        beyond = any(map(self._is_beyond, made))
        said = "\0".join(text for node in made for text in said_by(node)) if beyond else ""
        columns = self._columns() if beyond else []
        whole = dict(row for column in columns if _goes_through(said, column) for row in column)
        self._lost = self._whole.keys() - whole.keys()
        if whole.keys() != self._whole.keys():
            self._whole = whole
            self._nodes.clear()
            self._look()

    def lost(self, node: Node) -> bool:
        """Whether its literals hold a text that was the program's as long as every run went through all of its kind."""
        return any(text in literal for literal in said_by(node) for text in self._lost)

    def _is_beyond(self, node: Node) -> bool:
        """Whether its literals hold more than what code, prompts and components say."""
        if self._alone is None:
            self._look()
        return self._alone is None or not all(map(self._alone.cover, said_by(node)))

    def own(self, text: str) -> bool:
        """Whether these are words of the program's."""
        if self._texts is None:
            self._look()
        return self._texts is not None and self._texts.cover(text)

    def says(self, text: str) -> bool:
        """Whether the program says this as it stands, in one piece."""
        if self._texts is None:
            self._look()
        return self._texts is not None and self._texts.says(text)

    @property
    def has_run(self) -> bool:
        """Before, all that is known of it was read from a saved plan."""
        return self._ran

    def constants(self) -> list[str]:
        """What it says, but for what is one of several: patterns, separators and numbers among them."""
        if self._texts is None:
            self._look()
        return [text for text, place in self._found.items() if place is None or not place.several]

    def tables(self) -> list[Table]:
        """The short dicts of texts that code names, as far as they are as they were when it was accelerated."""
        tables = self._said_now().tables if self._standing.rows else []
        self._rows.update(row for table in tables for row in table)
        return tables

    def moved(self) -> Sequence[str]:
        """The texts of entries of these dicts that have changed since: those that they held, and those that they hold.
        `tables` may have told of them before."""
        if not self._rows:
            return ()
        stand = {row for table in self.tables() for row in table}
        gone = self._rows - stand
        keys = {key for key, _ in gone}
        texts = [text for key, text in (*gone, *self._said_now().moved) if key in keys]
        return [text for text in texts if len(text.split()) >= FEWEST_WORDS]

    def _columns(self) -> list[Column]:
        return self._said_now().columns if self._standing.columns else []

    def _said_now(self) -> Said:
        if self._now is None:
            self._now = self._references.said(self._standing)
        return self._now

    def _look(self, running: References | None = None) -> Said:
        """`running`: those of a run that is under way, instead of those of the lesson's."""
        references = running or self._references
        said = running.said(self._standing) if running is not None else self._said_now()
        alone = said.texts
        found = {**alone, **{text: at for text, at in self._whole.items() if references.stands(text, at)}}
        texts = chosen = Texts(found)
        if any(place is not None and place.several for place in found.values()):
            chosen = Texts(text for text, place in found.items() if place is None or not place.several)
        self._found, self._texts, self._chosen = found, texts, chosen
        self._alone = chosen if not self._whole else Texts(alone)
        return said

    # --- of a node that may be issued

    def note(self, nodes: Iterable[Node]) -> None:
        """Find out how much of the literals of these nodes is the program's; off its path."""
        nodes = list(nodes)
        self.loops(nodes)
        new = [node for node in nodes if node.predictable and asked_for(node) not in self._nodes]
        for node in new:
            self.lacks(node)
        if len(self._nodes) + len(new) > MAX_NODES:
            self._nodes.clear()
        self._nodes |= {asked_for(node): self._own(node, self._said_now) for node in new}

    def _own(self, node: Node, said: Callable[[], Said]) -> Own:
        assert self._chosen is not None
        texts = list(said_by(node))
        lines = [line for text in texts if not self._chosen.cover(text) for line in text.splitlines()]
        foreign = tuple(rest for line in lines if (rest := self._chosen.beyond(line)))
        movable = {text: place for text, place in self._found.items() if place is not None and not place.several}
        used = shared(texts, movable)
        places = said().held if foreign else {}
        came = [text for text in whole_in(foreign, places) if not self._chosen.cover(text)]
        return Own(foreign, tuple((text, movable[text]) for text in used), tuple((text, places[text]) for text in came))

    def foreign(self, node: Node) -> list[str]:
        """What of a node's literals is to be judged like values. All of it where nobody has looked."""
        own = self._nodes.get(asked_for(node))
        return list(own.foreign if own is not None else said_by(node))

    def stands(self, node: Node, references: References) -> bool:
        """Whether the program still says what the node's literals had from it, at this moment."""
        asked = asked_for(node)
        own = self._nodes.get(asked)
        if own is None:
            return True
        if asked in self._gone or not all(references.stands(text, place) for text, place in own.held):
            return False
        if all(references.stands(text, place) for text, place in own.stands):
            return True
        said = self._look(references)  # it may stand elsewhere now
        now = self._nodes[asked] = self._own(node, lambda: said)
        if set(now.foreign) <= set(own.foreign):
            return True
        self._nodes[asked] = own
        self._gone[asked] = LOOKED_AGAIN
        return False


def _goes_through(said: str, column: Column) -> bool:
    """Whether all of these stand there, one after the other, as words of their own."""
    at = 0
    for text, _ in column:
        at = said.find(text, at)
        while at >= 0 and not stands_alone(said, at, at + len(text)):
            at = said.find(text, at + 1)
        if at < 0 or not text.strip():
            return False
        at += len(text)
    return True
