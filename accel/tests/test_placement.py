"""Operators on workers: the beam search against all placements there are, and what a good one looks like."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from accel.engine.placement import Operator, place
from accel.engine.profile import Profile, at

PROFILE = Profile("llm", prefill=((100, 0.1), (1000, 1.0)), decode=((1, 0.02), (64, 0.08)), slots=64)
SOLVE = Operator("solve", "large", 64, 100, 100)
CRITICISE = Operator("criticise", "small", 64, 200, 100, after=("solve",))
REVISE = Operator("revise", "large", 64, 300, 100, after=("solve", "criticise"))
DEBATE = (SOLVE, CRITICISE, REVISE)


def all_of(operators: tuple[Operator, ...], workers: int, switch_s: float) -> Iterator[float]:
    """The seconds of every placement, worked out anew."""
    subsets = [
        chosen for size in range(1, workers + 1) for chosen in itertools.combinations(range(workers), size)
    ]  # fmt: skip
    for order in itertools.permutations(operators):
        names = [operator.name for operator in order]
        if any(names.index(name) > at for at, operator in enumerate(order) for name in operator.after):
            continue
        for choice in itertools.product(subsets, repeat=len(order)):
            if any(len(chosen) > operator.calls for operator, chosen in zip(order, choice, strict=True)):
                continue
            free, model, last = [0.0] * workers, [""] * workers, [""] * workers
            ended: dict[str, float] = {}
            for operator, chosen in zip(order, choice, strict=True):
                for worker in chosen:
                    switch = switch_s if model[worker] not in ("", operator.model) else 0.0
                    begin = max([free[worker] + switch, *(ended[name] for name in operator.after)])
                    calls = -(-operator.calls // len(chosen))
                    at_once = min(calls, 64)
                    found = operator.shared_tokens if operator.shares and last[worker] == operator.shares else 0
                    prompt_s = PROFILE.prefill_s(found, operator.prompt_tokens)
                    decode_s = operator.answer_tokens * at(PROFILE.decode, at_once) / at_once
                    free[worker] = begin + calls * (prompt_s + decode_s)
                    model[worker], last[worker] = operator.model, operator.name
                ended[operator.name] = max(free[worker] for worker in chosen)
            yield max(free)


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_best_placement_of_small_programs(seed: int) -> None:
    dice = random.Random(seed)
    operators: list[Operator] = []
    for number in range(dice.choice([2, 3, 4])):
        before = [operator.name for operator in operators]
        after = tuple(name for name in before if dice.random() < 0.5)
        operators.append(Operator(
            f"operator {number}", dice.choice(["large", "small"]), dice.choice([1, 8, 64]), dice.choice([100, 600]),
            dice.choice([20, 200]), after, dice.choice(["", *after]), 80,
        ))  # fmt: skip
    workers, switch_s = dice.choice([1, 2]), dice.choice([0.0, 1.0, 20.0])
    best_s = min(all_of(tuple(operators), workers, switch_s))
    assert place(operators, PROFILE, workers, switch_s, width=10_000).seconds == pytest.approx(best_s)
    assert best_s <= place(operators, PROFILE, workers, switch_s).seconds + 1e-9 <= 1.1 * best_s


def test_every_operator_is_served_and_none_before_those_that_it_waits_for() -> None:
    found = place(DEBATE, PROFILE, 3, 2.0)
    for line in found.lines:
        assert list(line) == sorted(line, key=["solve", "criticise", "revise"].index)
    assert {name for line in found.lines for name in line} == {"solve", "criticise", "revise"}
    with pytest.raises(ValueError, match="wait for each other"):
        place((replace(SOLVE, after=("revise",)), REVISE), PROFILE, 1)


def test_models_change_where_that_is_cheap_and_stay_where_it_is_dear() -> None:
    together = ("solve", "criticise", "revise")
    assert place(DEBATE, PROFILE, 2, 0.1).lines == (together, together)
    dear = place(DEBATE, PROFILE, 2, 1000.0)
    assert sorted(map(set, dear.lines), key=len) in ([{"criticise"}, {"solve", "revise"}], [set(), {*together}])
    assert dear.seconds < 1000.0


def test_what_begins_alike_stays_on_one_worker() -> None:
    """Two chains of two; each second one begins like its first."""
    firsts = [Operator(f"{name} first", "m", 8, 1000, 10) for name in "ab"]
    seconds = [
        Operator(f"{name} second", "m", 8, 1100, 10, (f"{name} first",), f"{name} first", 1000) for name in "ab"
    ]  # fmt: skip
    lines = place([*firsts, *seconds], PROFILE, 2).lines
    assert sorted(lines) == [("a first", "a second"), ("b first", "b second")]
