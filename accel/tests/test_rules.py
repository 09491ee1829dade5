"""The table of what holds early calls back."""

from __future__ import annotations

from string import Formatter

import pytest

from accel.graph.rules import EGRESS, RULES, STOPS, Rule
from accel.run.foresight.permits import ASKED


def test_names_tell_rules_apart() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) > 40


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_reason_is_one_sentence_with_the_remedy_behind_it(rule: Rule) -> None:
    values = {name: 0.5 for _, name, _, _ in Formatter().parse(rule.sentence) if name}
    said = str(rule(**values))
    assert said and "{" not in said.removesuffix(rule.remedy) and said.endswith(rule.remedy)


def test_every_rule_that_is_asked_is_one_of_the_table_and_is_asked_once() -> None:
    asked = [rule for rule, _ in ASKED]
    assert len({rule.name for rule in asked}) == len(asked) and set(asked) <= set(RULES)


def test_reasons_are_compared_by_rule_and_values() -> None:
    assert STOPS(node="b") == STOPS(node="b") != STOPS(node="c")
    assert EGRESS().rule is EGRESS and EGRESS().rule.lift is not None
