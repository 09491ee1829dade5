"""Every way in which a lesson reads an input: as what it may be made of, and for what it may be made.

Each costs time in every lesson and lines in this folder. What programs and tests need each is said by
`python -m bench ablation`, which switches each off in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...text.extract import EXTRACTORS
from ...text.functions import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Reading:
    """`says`: what is read so."""

    name: str
    says: str


READINGS: tuple[Reading, ...] = (
    # what one value gives, beside itself
    Reading("strip", "a text without the white space around it"),
    Reading("escape", "a text as it stands inside quotes of JSON or Python"),
    Reading("number", "a number as text"),
    Reading("count", "how many elements a list has, as text"),
    Reading("items", "a dict as the list of its items"),
    *(Reading(name, f"the items of an answer: `{name}`") for name in EXTRACTORS),
    # what a program computes from values, where nothing else explains an input
    *(Reading(name, function.says) for name, function in FUNCTIONS.items()),
    Reading("framework", "what a framework computes between two calls, as its adapter says"),
    # what is handed on as it is
    Reading("record", "a dict that is known as it stands"),
    Reading("list", "a list that is known as it stands"),
    Reading("spread", "a list that stands among other elements of one, of which calls have more or fewer"),
    Reading("collect", "a list of all elements of known lists"),
    Reading("distinct collect", "such a list without repetitions"),
    # where a value stands in a text
    Reading("clip", "the first characters of a value"),
    Reading("head", "a value up to its first sentence, line, comma ..."),
    Reading("printed", "a list or dict as `str` or `json.dumps` print it"),
    Reading("quoted", "a text with its quotes inside a printed list or dict"),
    Reading(
        "short", "values of three characters and more, where those of eight explain nothing, or the run was given them"
    ),
    Reading("differing", "a shorter value where the texts of two calls differ"),
    Reading("position", "the number of a call among those of its loop, where their texts differ"),
    Reading("edited", "a value in upper case, title case, without the punctuation around it ..."),
    # several values
    Reading("join", "the elements of a list, with a text between them"),
    Reading("rows", "the elements of several lists side by side, joined"),
    Reading("beside", "a short value beside a longer one of the same element, in every row"),
    Reading("label", "what a program says for each of a few short fields: a speaker's name, by the kind of a message"),
    Reading("counted", "a join whose text between the elements counts them"),
    Reading("unique", "a join without repetitions"),
    Reading("single", "a list of one, joined"),
    # several calls
    Reading("repeat", "the same call several times"),
    Reading("distinct", "a loop over elements without repetitions"),
    Reading("second", "a loop from the second element on"),
    Reading("guide", "elements that stand at several places of a list, told by what else the call uses"),
    Reading("rounds", "calls of tools by the answer that asks for them, and the model's next call by their results"),
    Reading("relay", "what each round of a loop hands on to the next"),
    Reading("ordinal", "calls that no loop explains, each by its place among those of its site"),
    Reading("gathered", "the answers of calls that are no loop, as a list of which functions are tried"),
    Reading("constant", "a list or dict that all calls of a site have is a literal"),
    # which calls are made, and when
    Reading("verdict", "a short value that decides whether a call is made"),
    Reading("first word", "the first word of an answer, that decides so"),
    Reading(
        "early", "what is known earlier than by a framework node that handed it on, or in a loop's first round alone"
    ),
)
"""One visible tuple."""

Readings = frozenset[str]
"""Those that are on, by name."""
ALL: Readings = frozenset(reading.name for reading in READINGS)


def without(*names: str) -> Readings:
    """All but these, to see what they are worth. Raises KeyError for a name that is no reading."""
    unknown = set(names) - ALL
    if unknown:
        raise KeyError(f"no reading is called {min(unknown)}; there are {', '.join(sorted(ALL))}")
    return ALL - set(names)
