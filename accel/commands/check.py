"""Whether a program gives the same accelerated: unmodified and accelerated in turns on the user's own inputs.

    assert accel.check(graph, inputs)                                  # true if nothing differs
    print(accel.check("app.py:graph", inputs, cassette="answers.jsonl"))

Every run is seen as its user sees it (result, streams, error) and from below: which calls of components it made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..api import accelerate, settle
from ..errors import ConfigurationError
from ..run.gains.pace import load
from ..text.values import freeze, snapshot
from .cassette import Cassette
from .compare import GENERATED, Difference, difference, error_in_words, plain, shortened
from .config import accelerate_options
from .findings import ACCELERATED, UNMODIFIED, CheckResult, Found, Wasted
from .inputs import counted, listed
from .programs import Program, program_of
from .tapping import Leaf, RunLog, Tapping

ROUNDS = 4
MAX_FOUND = 10
"""Differences after which a check ends."""
MAX_RECORDINGS = 4
"""Runs until nothing new is recorded: one more than is recorded, unless the program asks something new each time."""
IN_ANY_ORDER = ("updates", "messages", "custom", "events")
"""Streams in which what nodes side by side say comes in any order."""
Progress = Callable[[int, int, str], None]
"""Told how many runs are over, of how many, and what comes next."""


def check(
    program: Any,
    inputs: Iterable[Any],
    *,
    rounds: int = ROUNDS,
    cassette: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    awaited: bool | None = None,
    fresh: bool = False,
    progress: Progress = lambda done, total, text: None,
    **options: Any,
) -> CheckResult:
    """Run a program on these inputs, unmodified and accelerated, and compare. It runs with its effects, twice for each
    input and round.

    `program`: a graph, chain, engine or workflow, a factory of one, or its name (``"app.py:graph"``). `rounds`: how
    often every input is asked, in turns streamed and not, so that Accel learns; two different inputs at least.
    `cassette`: a file with the answers of models and services (`accel.commands.cassette`): those that it has not are
    recorded, once. `config`: for every run, of the framework's form. `awaited`: run it by its coroutines (left out:
    only where it has nothing else). `fresh`: call the factory anew for each run, as what the program keeps from run to
    run (in a store of its own) is no part of what is compared. `options`: of `accelerate`.

    Raises ConfigurationError.
    """
    counted("rounds", rounds, "Give how often every input is asked: 3 or more for Accel to learn.")
    asked = listed(inputs, "check")
    with program_of(program, awaited=awaited, config=config) as opened:
        found = accelerate_options(None, options)
        return run_check(opened, asked, rounds, cassette, progress, found, fresh)


def run_check(
    program: Program,
    inputs: list[Any],
    rounds: int,
    cassette: str | Path | None,
    progress: Progress,
    options: Mapping[str, Any],
    fresh: bool = False,
) -> CheckResult:
    """The same of a program that is open."""
    if not inputs:
        raise ConfigurationError("There are no inputs.", "Give what the program is asked, two different ones at least.")
    tape = Path(cassette) if cassette is not None else None
    return _Check(program, inputs, rounds, tape, options, fresh).run(progress)


@dataclass(frozen=True)
class Seen:
    """One run."""

    told: Any
    """As plain values: what its user saw."""
    log: RunLog


class _Check:
    def __init__(
        self,
        program: Program,
        inputs: list[Any],
        rounds: int,
        cassette: Path | None,
        options: Mapping[str, Any],
        fresh: bool,
    ) -> None:
        self.program, self.inputs, self.rounds = program, inputs, rounds
        self.cassette = Cassette(cassette) if cassette is not None else None
        self.tap = Tapping(program.kind, self.cassette)
        self.fresh, self.options = fresh, options
        self.fast = program.accelerated(**options)
        self.result = CheckResult(program.name, len(inputs), rounds, program.ways, cassette=self.cassette)
        self.result.different = len({freeze(snapshot(value)) for value in inputs})
        self._varying: set[int] = set()
        self._wasted: Counter[tuple[Leaf, bool]] = Counter()
        """Early calls in vain, and whether the program made the same call itself."""

    def run(self, progress: Progress) -> CheckResult:
        total, followed = self.rounds * len(self.inputs), load.enabled
        load.enabled = False  # also on a machine that is busy with something else
        try:
            with self.tap.within():
                for number in range(total):
                    turn, place = divmod(number, len(self.inputs))
                    progress(number, total, f"round {turn + 1}, input {place + 1}")
                    self._compare(turn, place)
                    if len(self.result.found) >= MAX_FOUND:
                        break
        finally:
            load.enabled = followed
        progress(total, total, "")
        self._finish()
        return self.result

    def _compare(self, turn: int, place: int) -> None:
        way = self.program.ways[::-1][turn % len(self.program.ways)]  # streamed first: a recorded stream has the whole
        before = self._unmodified(place, way)
        after = self._run(place, way, accelerated=True)
        self.result.runs += 1
        if (error := before.told.get("raised")) is not None:
            self.result.raised += 1
            self.result.errors.add(error_in_words(error["$class"], ", ".join(map(str, error["args"]))))
        self._note_waste(before.log, after.log)
        told, calls = self._told(before.told, after.told), _calls(before.log, after.log)
        found = calls if calls and after.log.unrecorded else [*told, *calls]  # what it ended with comes from that
        if not found:
            return
        if place not in self._varying and self._differs(before, self._run(place, way, accelerated=False)):
            self._varying.add(place)
        varies = place in self._varying
        self.result.found += [Found(place + 1, turn + 1, way, each, varies) for each in found]

    def _unmodified(self, place: int, way: str) -> Seen:
        """Run it, again where that has recorded something, or shown classes of components that nobody watched."""
        for _ in range(MAX_RECORDINGS):
            recorded, known = self._recorded(), self.tap.look()
            seen = self._run(place, way, accelerated=False)
            if self._recorded() == recorded and self.tap.look() == known:
                break
        return seen

    def _recorded(self) -> int:
        return self.cassette.recorded if self.cassette is not None else 0

    def _run(self, place: int, way: str, accelerated: bool) -> Seen:
        told: dict[str, Any] = {}
        if accelerated:
            self.fast.plan.pace.news()  # every run is followed
        obj = self._object(accelerated)
        with self.tap.run(accelerated) as log:
            try:
                self.program.run(obj, self.inputs[place], way, told)
            except Exception as error:  # noqa: BLE001  whatever the program raises is compared
                told["raised"] = error
        settle()
        return Seen(plain(told, self.program.kind.plain), log)

    def _object(self, accelerated: bool) -> Any:
        """What runs next; with what was learnt so far, if it is made anew."""
        if not self.fresh:
            return self.fast if accelerated else self.program.obj
        made = self.program.made_anew()
        return accelerate(made, **{**self.options, "plan": self.fast.plan}) if accelerated else made

    # --- comparing

    def _told(self, before: dict[str, Any], after: dict[str, Any]) -> list[Difference]:
        """The first difference in what the user sees: errors before results, and these before streams."""
        names = sorted({**before, **after}, key=lambda name: ("raised", "result").index(name) if name in _FIRST else 2)
        for name in names:
            if name in IN_ANY_ORDER and before.get(name) != after.get(name):
                both = [sorted(each.get(name) or (), key=repr) for each in (before, after)]
                if both[0] == both[1]:
                    self.result.reordered += 1
                    continue
            found = difference({name: before[name]} if name in before else {}, _only(after, name))
            if found is not None:
                return [found]
        return []

    def _differs(self, one: Seen, other: Seen) -> bool:
        reordered = self.result.reordered
        differs = bool(self._told(one.told, other.told) or _calls(one.log, other.log))
        self.result.reordered = reordered
        return differs

    def _note_waste(self, before: RunLog, after: RunLog) -> None:
        """Early calls that answered no call of the program's, nor one that the unmodified one makes inside of those."""
        asked, ran = Counter(map(_same, before.asked)), Counter(map(_same, after.ran))
        early = [leaf for leaf in after.early if leaf.inside is None]
        kinds = {_same(leaf): leaf for leaf in early}
        for same, times in Counter(map(_same, early)).items():
            if (extra := times - max(0, asked[same] - ran[same])) > 0:
                self._wasted[kinds[same], bool(asked[same])] += extra

    def _finish(self) -> None:
        result, counts = self.result, self.fast.plan.total
        result.counts = {name: getattr(counts, name) for name in ("demanded", "issued", "retired", "wasted", "fed")}
        result.wasted = [
            Wasted(leaf.key.component, leaf.key.family, shortened(GENERATED.sub("…", leaf.said)), times, again)
            for (leaf, again), times in self._wasted.most_common()
        ]


_FIRST = ("raised", "result")


def _only(told: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: told[name]} if name in told else {}


# --- calls


Same = tuple[str, str, str, str]


def _same(leaf: Leaf) -> Same:
    """What two calls have in common that ask the same, but for times and made-up ids."""
    return leaf.key.component, leaf.key.configured, leaf.key.family, leaf.key.alike


def _path(leaf: Leaf) -> tuple[Same, ...]:
    """It, after the calls that it was made by."""
    return (*(_path(leaf.inside) if leaf.inside is not None else ()), _same(leaf))


def _calls(before: RunLog, after: RunLog) -> list[Difference]:
    """The first difference in what the program asked of its components. What an early call has answered was not made
    once more, with what it would have asked itself."""
    counts = [Counter(map(_path, log.asked)) for log in (before, after)]
    ran = Counter(map(_path, after.ran))

    def excused(path: tuple[Same, ...]) -> bool:
        return any(counts[1][path[:end]] > ran[path[:end]] for end in range(1, len(path)))

    fewer = (leaf for leaf in before.asked if counts[0][_path(leaf)] > counts[1][_path(leaf)])
    missing = next((leaf for leaf in fewer if not excused(_path(leaf))), None)
    extra = [leaf for leaf in after.asked if counts[1][_path(leaf)] > counts[0][_path(leaf)]]
    if missing is None:
        return [_times(leaf, counts[0][_path(leaf)], counts[1][_path(leaf)]) for leaf in extra[:1]]
    alike = (leaf for leaf in extra if _same(leaf)[:3] == _same(missing)[:3])
    instead = next((leaf for leaf in alike if not counts[0][_path(leaf)]), None)
    if instead is not None:
        found = difference(missing.input, instead.input, f"calls.{missing.name}")
        if found is not None:
            return [found]
    return [_times(missing, counts[0][_path(missing)], counts[1][_path(missing)])]


def _times(leaf: Leaf, before: int, after: int) -> Difference:
    times = [f"{count} time{'s' * (count != 1)}" for count in (before, after)]
    return Difference(f"calls.{leaf.name} with {shortened(leaf.said)}", *times)


__all__ = ["ACCELERATED", "UNMODIFIED", "CheckResult", "check", "run_check"]
