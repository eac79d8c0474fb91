"""`GET /compare` says what the comparison page says."""

from __future__ import annotations

import pytest

from runs.engine.retrying import extend_runs
from tests.builders import close, make_run, make_suite
from tests.diverging import diverging_runs
from tests.runs.carrying import passed, start
from tests.runs.looking import carry


@pytest.fixture
def runs(project):
    return diverging_runs(make_suite(project, ("create", "export", "list")))


def compared(api, *runs, **query):
    return api("viewer").get("/compare", runs=",".join(str(run.pk) for run in runs), **query)


def test_it_has_the_first_different_commands(api, runs):
    base, new = runs
    (found,) = compared(api, base, new).json()["comparisons"]
    apart = found["first_divergences"]
    assert (apart["newly_failing"], apart["most_common"]) == (
        3,
        {"command": "deploy --target", "scenarios": 2},
    )
    assert apart["scenarios"][0] == {
        "scenario": "create",
        "base_trial": base.trial_set.get(scenario__key="create").pk,
        "new_trial": new.trial_set.get(scenario__key="create").pk,
        "number": 2,
        "base_command": "deploy --env",
        "new_command": "deploy --target",
    }


def test_it_compares_up_to_ten_runs_with_the_first(api, runs, django_assert_max_num_queries):
    base, new = runs
    others = [close(make_run(base.suite_version)) for _ in range(8)]
    with django_assert_max_num_queries(35):
        found = compared(api, base, *others, new).json()["comparisons"]
    assert [each["run"] for each in found] == [*(run.pk for run in others), new.pk]
    assert found[0]["first_divergences"] == {"newly_failing": 0, "most_common": None, "scenarios": []}
    refused = compared(api, base, *others, new, close(make_run(base.suite_version)))
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "You can compare at most 10 runs at once.",
    )


def test_it_pools_further_trials_by_default(api, runs):
    base, new = runs
    extend_runs([base, new], ["create"], 5, by=None)
    for run in runs:
        start(run)
    carry(runs, lambda *_: passed())
    (found,) = compared(api, base, new).json()["comparisons"]
    assert found["pooled"] == [base.pk, new.pk]
    rate = next(each for each in found["measures"] if each["measure"] == "trial/pass")
    assert rate["trials"] == [8, 8]
    (alone,) = compared(api, base, new, fresh="false").json()["comparisons"]
    assert alone["pooled"] == []
