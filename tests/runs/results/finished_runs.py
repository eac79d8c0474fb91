"""A history of finished runs, and the rows of their pages."""

from __future__ import annotations

from runs.results.digests import trials_of
from runs.results.outcome_history import recent_runs
from runs.results.run_page.scenarios import scenario_rows
from tests.builders import close, make_run, make_trial
from tests.trial_parts import make_judging


def rows_of(run):
    """Return the rows of a run's page."""
    recent = recent_runs(run.suite_id, target=run.target_id, up_to=run.pk)
    return scenario_rows(trials_of(run), recent)


def history(version, count=3):
    """Return finished runs with a passed and a failed trial each."""
    runs = []
    for _ in range(count):
        run = make_run(version)
        make_judging(make_trial(run, "create"))
        make_judging(make_trial(run, "export", outcome="fail"))
        runs.append(close(run))
    return runs
