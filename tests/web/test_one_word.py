"""A state, an outcome and a verdict are called the same in lists, filters, badges, REST and reports."""

from __future__ import annotations

import re

import pytest
from django.conf import settings

from evalhub.web.states import STATES as BADGES
from evaluators.statistics.measure_change import ChangeVerdict
from evaluators.statistics.scenario_classes import ScenarioClass
from runs.models.run import RunState
from runs.results.run_filters import STATES, VERDICTS
from runs.results.run_page.api import RunFilters


@pytest.mark.parametrize("verdict", ChangeVerdict)
def test_a_verdict_has_one_word_and_can_be_filtered(verdict):
    assert BADGES[verdict][1] == verdict.label.lower()
    # A run has a better direction, so it never just changed.
    if verdict is ChangeVerdict.CHANGED:
        assert verdict.value not in dict(VERDICTS)
        return
    assert dict(VERDICTS)[verdict.value] == verdict.label
    assert RunFilters(verdict=[verdict.value]).filters().verdict == (verdict.value,)


@pytest.mark.parametrize(("state", "label"), [each for each in STATES if each[0] != "open"])
def test_a_state_has_one_word_and_can_be_filtered(state, label):
    assert BADGES[state][1] == label
    assert RunFilters(state=[state]).filters().state == (state,)


@pytest.mark.parametrize("value", [*RunState, *ScenarioClass])
def test_states_and_classes_have_badges(value):
    assert BADGES[value][1] == value.value


OTHER_NOTATIONS = {
    "empty": r"\bn/a\b|\bN/A\b|>\s*(-|—|none|unknown)\s*<|\"(none|unknown|-|—)\", true\)",
    "dates": r"\|date\(|strftime",
}


@pytest.mark.parametrize("pattern", OTHER_NOTATIONS.values(), ids=OTHER_NOTATIONS)
def test_empty_values_and_dates_have_one_notation(pattern):
    # The notation of rates over too few known ends is defined there.
    known = "_known.html"
    texts = {each: each.read_text() for each in (settings.ASSETS / "templates").rglob("*.html")}
    assert [
        each.name for each, text in texts.items() if each.name != known and re.search(pattern, text)
    ] == []
