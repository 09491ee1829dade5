"""What an instruction asks for, read by patterns: a list, yes or no, a score, a choice, JSON, a length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["json", "yes_no", "score", "choice", "list", "prose"]

_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_N = rf"(?:\d{{1,4}}|{'|'.join(_NUMBER_WORDS[2:])})"
_ONE_OR_N = rf"(?:{_N}|one|an?(?: single)?|a short)"
_TO = r"\s*(?:to|or|-|–)\s*"
_MOST = r"(?:at most|up to|no more than|not more than|maximum(?: of)?|max|under|below|fewer than|less than|within)"


@dataclass(frozen=True, slots=True)
class Length:
    """From `least` to `most` of a unit."""

    least: int
    most: int
    unit: Literal["words", "sentences", "paragraphs"]


def _number(text: str) -> int:
    text = text.lower()
    if text.isdigit():
        return int(text)
    return _NUMBER_WORDS.index(text) if text in _NUMBER_WORDS else 1


# --- where the instruction is

_HEAD, _TAIL = 700, 400
_DATA = (
    "question query passage document context note text draft history conversation summary topic fact evidence claim "
    "statement article input data source result title report chunk excerpt content message finding answer "
    "solution problem critique feedback response review"
)
_DATA_LINE = re.compile(
    r"\W*(?:(?:the|their|user|user's|original|existing|new|first|retrieved|relevant|current|previous|search|given)\s+){0,3}"
    rf"(?:{'|'.join(_DATA.split())}|quer(?:y|ies))s?(?:\s+(?:from|of|by|about|\d+)\b[^:\n]{{0,40}})?\s*:(?:\s|$)",
    re.I,
)


def regions(message: str) -> Iterator[str]:
    """The parts of a message that may instruct: its beginning, then its end, without labelled data ("Question: ...",
    up to the next empty line)."""
    if len(message) <= _HEAD + _TAIL:
        yield _without_data(message) or message
    else:
        head = message[:_HEAD]
        yield _without_data(head) or head
        yield _without_data(message[-_TAIL:])


def _without_data(text: str) -> str:
    kept, in_data = [], False
    for line in text.split("\n"):
        if _DATA_LINE.match(line):
            in_data = line.rstrip().endswith(":")  # else the data is on this line
        elif not line.strip():
            in_data = False
        elif not in_data:
            kept.append(line)
    return "\n".join(kept)


# --- kinds

_JSON = re.compile(r"\bjson\b", re.I)
_YES_NO = re.compile(r"\byes\b\W{1,6}(?:(?:or|and)\b\W{0,4})?no\b(?!\W{0,3}or\b)", re.I)
_SCORE = re.compile(
    r"\b(?:scores?|rate|rating|grade|rank|scale|number|integer|confidence)\b[^.\n]{0,60}?"
    r"(?:(?P<low>-?\b\d+(?:\.\d+)?|\b(?:zero|one)\b)\s*(?:to|and|-|–)\s*(?P<high>\d+(?:\.\d+)?\b|five|ten)"
    r"|out of (?P<best>\d+))",
    re.I,
)
_LIST = re.compile(
    r"\bper line\b|\b(?:separate|own|new) lines?\b|\bon each line\b|\b(?:numbered|bulleted|bullet)\b|\bbullets\b"
    r"|\ba list of\b|\bcomma[- ]separated\b|\bseparated by commas\b"
    r"|(?:^|[.!?:;,\n]\s*|\b(?:please|then|and|to|you)\s+)(?:list|enumerate)\b"
    rf"|\b(?:list|name|write|give|propose|generate|suggest|produce|provide|create|identify|extract|ask)\s+"
    rf"(?:me\s+|{_MOST}\s+|exactly\s+|about\s+)?{_N}(?:{_TO}{_N})?\s+(?:[\w-]+\s+){{0,3}}?"
    r"(?:queries|questions|sub-?questions|ideas|steps|points|facts|topics|options|reasons|examples|items|names|lines"
    r"|keywords|titles|claims|tasks|sub-?tasks|sections|colou?rs|ways|phrases|terms|aspects|alternatives|variants)\b",
    re.I,
)
_OPTION = r"""(?:"[^"\n]{1,40}"|(?<!\w)'[^'\n]{1,40}'|`[^`\n]{1,40}`)"""
_SAY = r"\b(?:answer|respond|reply|return|output|say|write)\b"
_CHOICE = re.compile(
    rf"(?P<row>\bone of(?: the following| these)?(?: [a-z]+){{0,2}}\s*:"
    rf"|(?:{_SAY}|\b(?:choose|pick|select)\b)[^.\n:]{{0,30}}?\bone of\b"
    r"|\b(?:choose|pick|select)\s+(?:from|between|among)\b"
    rf"|\bclassify\b[^.\n]{{0,60}}?\b(?:as|into)\b(?: one of\b)?|{_SAY}[^.\n]{{0,30}}?\beither\b)"
    rf"|(?P<cases>{_SAY}[^.\n\"'`]{{0,25}}(?={_OPTION}\s+(?:if|when|for)\b))"
    rf"|{_OPTION}(?:\s*[,/]\s*{_OPTION})*\s*,?\s*or\s+{_OPTION}",
    re.I,
)
_AVOIDED = re.compile(r"\b(?:avoid|never|not|don't|without)\b[^.!?:;,\n]*$", re.I)
_ITEM = re.compile(r"^\s*(?:[-*•–]|\d+[.)])\s+(.{1,40})$", re.M)
_SENTENCE_END = re.compile(r"\.(?:\s|$)")
_SEPARATOR = re.compile(r"\s*(?:,|/|\||\bor\b|\band\b)\s*", re.I)


def read(text: str) -> Kind | None:
    """What is asked for; of several things the first, but JSON before all. None: nothing in particular."""
    if not text:
        return None
    if _JSON.search(text):
        return "json"
    found: list[tuple[int, Kind]] = []
    for kind, match in (("yes_no", _YES_NO.search(text)), ("score", _SCORE.search(text)), ("list", _LIST.search(text))):
        if match:
            found.append((match.start(), kind))  # type: ignore[arg-type]
    start, answers = _choice(text)
    if answers:
        found.append((start, "choice"))
    if found:
        kind = min(found)[1]
        return "yes_no" if kind == "choice" and {option.lower() for option in answers} == {"yes", "no"} else kind
    return "prose" if length(text) else None


def yes_no(text: str) -> bool:
    return bool(_YES_NO.search(text))


def after_yes_no(text: str) -> str:
    """What is said behind the request for yes or no, up to the end of the next sentence or so."""
    match = _YES_NO.search(text)
    return text[match.end() : match.end() + 120] if match else ""


def options(text: str) -> list[str]:
    """The answers to choose from, or none."""
    return _choice(text)[1]


def _choice(text: str) -> tuple[int, list[str]]:
    """Where a choice is asked for, and the answers."""
    for match in _CHOICE.finditer(text):
        if _AVOIDED.search(text, 0, match.start()):
            continue
        if match.group("row") is not None:
            found = _options_behind(text[match.end() : match.end() + 600])
        else:
            end = match.end() + 400 if match.group("cases") is not None else match.end()
            found = [option[1:-1] for option in re.findall(_OPTION, text[match.start() : end])]
        if len(found) > 1:
            return match.start(), list(dict.fromkeys(found))
    return -1, []


def _options_behind(text: str) -> list[str]:
    """Options on the same line, before or behind its colon, or as items of the lines that follow."""
    line, _, below = text.partition("\n")
    line = _SENTENCE_END.split(line, maxsplit=1)[0]
    for row in (line.rpartition(":")[2], line.partition(":")[0]):
        found = [part.strip(" \"'`.()[]") for part in _SEPARATOR.split(row)]
        found = [option for option in found if option]
        if len(found) > 1 and all(len(option.split()) <= 4 for option in found):
            return found
    return [item.strip(" \"'`.") for item in _ITEM.findall(below)]


def wants_reason(text: str) -> bool:
    """Whether a short answer is to be followed by why."""
    return bool(re.search(r"\b(?:explain|explanation|reasons?|why|justif\w+|because|then|followed by)\b", text, re.I))


def score_range(text: str) -> tuple[str, str] | None:
    """The bounds of a score as they are written, or as digits."""
    match = _SCORE.search(text)
    if not match:
        return None
    if match.group("best"):
        return "0", match.group("best")
    low, high = match.group("low").lower(), match.group("high").lower()
    return {"zero": "0", "one": "1"}.get(low, low), {"five": "5", "ten": "10"}.get(high, high)


_COUNT = re.compile(
    rf"(?P<most>\b{_MOST}\s+)?\b(?P<n>{_N})(?:{_TO}(?P<m>{_N}))?\s+"
    r"(?!words?\b|sentences?\b|characters?\b|paragraphs?\b|and\b|to\b)[^\W\d]",
    re.I,
)


def count(text: str) -> tuple[int, int] | None:
    """How many items, from least to most."""
    match = _COUNT.search(text)
    if not match:
        return None
    n = max(1, min(50, _number(match.group("n"))))
    if match.group("m"):
        return n, max(n, min(50, _number(match.group("m"))))
    return (max(1, n // 2), n) if match.group("most") else (n, n)


def marker(text: str) -> Literal["numbers", "bullets", "commas", ""]:
    if re.search(r"\bnumbered\b|\bnumber (?:them|each)\b", text, re.I):
        return "numbers"
    if re.search(r"\bbullet|\bdashes\b", text, re.I):
        return "bullets"
    return "commas" if re.search(r"\bcomma[- ]separated\b|\bseparated by commas\b", text, re.I) else ""


_LENGTH = re.compile(
    rf"(?:(?P<most>\b{_MOST})|(?P<least>\bat least)|\b(?:about|around|roughly|approximately|exactly|in|of|with))?\s*"
    rf"\b(?P<n>{_ONE_OR_N})(?:{_TO}(?P<m>{_N}))?[\s-]+(?:[a-z]{{4,9}}\s+)?(?P<unit>word|sentence|paragraph)s?\b",
    re.I,
)


def length(text: str) -> Length | None:
    match = _LENGTH.search(text)
    if not match:
        return None
    unit: Literal["words", "sentences", "paragraphs"] = f"{match.group('unit').lower()}s"  # type: ignore[assignment]
    n = max(1, _number(match.group("n")))
    m = max(n, _number(match.group("m"))) if match.group("m") else n
    if match.group("most"):
        below = 1 if match.group("most").lower() in ("under", "below", "fewer than", "less than") else 0
        m = max(1, n - below)
        n = max(1, m // 2)
    elif match.group("least"):
        m = n + n // 3
    return Length(n, m, unit)


# --- JSON

_FIELDS = re.compile(
    r"\b(?:fields?|keys?|properties|attributes)\b\s*(?:named|called|are|is)?\s*[:=]?\s*(?P<names>[^\n.;{]{1,300})", re.I
)
_FIELD = re.compile(r"""(?:the |an? |single )*(?P<quote>["'`]?)(?P<name>[A-Za-z_]\w*)["'`]?\s*(?P<type>[(:].*)?""")
_BETWEEN_FIELDS = re.compile(r"\s*(?:,|&|\band\b)\s*(?:and\s+)?(?![^()]*\))", re.I)
_NO_FIELD = frozenset("nothing no not only do return with without and the each where".split())


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    hint: str  # what the instruction says of its type, in lower case


def fields(text: str) -> list[Field]:
    """The fields of the JSON object asked for, or none."""
    match = _FIELDS.search(text)
    found: list[tuple[bool, Field]] = []
    for part in _BETWEEN_FIELDS.split(match.group("names")) if match else ():
        named = _FIELD.match(part.strip())
        if named and named.group("name").lower() not in _NO_FIELD:
            found.append((bool(named.group("quote")), Field(named.group("name"), (named.group("type") or "").lower())))
    quoted = [field for is_quoted, field in found if is_quoted]  # then what is not quoted says something about them
    if found:
        return list(dict.fromkeys(quoted or [field for _, field in found]))
    shown = re.findall(r'"([A-Za-z_]\w*)"\s*:\s*(\[|"|\d|true|false|)', text)
    hints = {"[": "list", "true": "bool", "false": "bool"}
    return list(
        {name: Field(name, hints.get(value, "number" if value.isdigit() else "")) for name, value in shown}.values()
    )


def json_list(text: str) -> bool:
    return bool(re.search(r"\bjson\s+(?:list|array)\b|\blist\b.*\b(?:as|in) (?:an? )?json\b(?! object)", text, re.I))


def fenced(text: str) -> bool:
    return bool(re.search(r"\bcode[- ](?:block|fence)|\bfenced\b|```", text, re.I))
