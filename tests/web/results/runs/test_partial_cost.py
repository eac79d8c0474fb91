"""A run's cost says that it is a part of the whole."""

from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from runs.exchange.exports.summary_markdown import run_summary
from tests.builders import close, make_run, make_trial
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


@pytest.mark.django_db
@pytest.mark.parametrize(("second", "shown"), [(0.20, "Cost $0.40"), (None, "Cost at least $0.20")])
def test_a_partial_cost_says_at_least(version, signed_in, second, shown):
    run = make_run(version, cost_usd=0.20 + (second or 0.0))
    for cost in (0.20, second):
        make_trial(run, "create", outcome="pass", cost_usd=cost)
    close(run)
    assert shown in parse(signed_in().get(f"/p/tools/runs/{run.pk}/")).text
    amount = shown.removeprefix("Cost ")
    for address in ("/p/tools/", "/p/tools/runs/"):
        row = parse(signed_in().get(address)).text
        assert amount.replace("at least ", "≥") in row.replace("≥ ", "≥")
        assert ("≥" in row) == (second is None)
    command = io.StringIO()
    call_command("show_run", str(run.pk), stdout=command)
    assert amount in command.getvalue()
    assert amount in run_summary(run)
