"""Further runs of 0.1.2 become rounds of the runs that were compared, where nothing had changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from runs.compare.looks import extensions_of
from runs.compare.measure_changes import compare_run_measures, compare_with_first
from runs.models import Launch, Run
from tests.builders import close, make_project, make_run, make_suite, make_trial

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
BEFORE = [("runs", "0004_one_count")]


def migrate(state: list[tuple[str, str]]) -> Any:
    """Migrate the database to a state; return its models."""
    executor = MigrationExecutor(connection)
    executor.migrate(state)
    return executor.loader.project_state(state).apps


@pytest.fixture
def newest() -> Iterator[list[tuple[str, str]]]:
    leaves = [key for key in MigrationExecutor(connection).loader.graph.leaf_nodes() if key[0] == "runs"]
    yield leaves
    migrate(leaves)


@pytest.mark.parametrize("changed", [False, True], ids=["the same tool", "another tool"])
def test_further_runs_become_rounds_where_nothing_changed(newest, changed):
    version = make_suite(make_project(), ("create", "export"))
    runs = [make_run(version, fingerprint={"tool_version": "1"}) for _ in range(2)]
    launch = Launch.objects.create(project=runs[0].project, trigger="confirm")
    tool = {"fingerprint": {"tool_version": "2" if changed else "1", "evalhub": "9"}, "launch": launch}
    further = [make_run(version, is_experiment=True, cost_usd=0.5, **tool) for _ in runs]
    for n, run in enumerate((*runs, *further)):
        for index in range(3):
            make_trial(run, "create", index=index, outcome="fail" if n % 2 else "pass")
        close(run)
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(cost_usd=1.0)
    compared = Run.objects.filter(pk__in=[run.pk for run in runs]).order_by("pk")
    rates = list(compared.values_list("pass_rate", "passed", "failed"))
    old = migrate(BEFORE)
    for run, more in zip(runs, further, strict=True):
        old.get_model("runs", "Run").objects.filter(pk=more.pk).update(more_of=run.pk)
    migrate(newest)
    base, new = compared.all()
    assert [(run.pass_rate, run.passed, run.failed) for run in (base, new)] == rates
    assert compare_run_measures(base, new).pass_rate.trials == (3, 3)
    extensions = extensions_of([base, new])
    if changed:
        assert (extensions, Run.objects.count()) == ([], 4)
        return
    assert (Run.objects.count(), new.cost_usd, new.retest_usd) == (2, 1.5, 0.5)
    assert sorted(new.trial_set.values_list("round", "index")) == [(n // 3, n) for n in range(6)]
    (found,) = compare_with_first(base, [new], extensions=extensions)
    assert found.pass_rate.trials == (6, 6)
    # The second look at the comparison.
    assert found.levels[0] == pytest.approx(0.009, abs=0.0005)
