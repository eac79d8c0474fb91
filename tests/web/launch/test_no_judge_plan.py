"""A plan whose trials nothing could judge."""

from __future__ import annotations

import pytest
from django.utils import timezone

from evalhub.teams.models import Project
from runs.models import Run, Worker
from tests.builders import make_suite, make_target
from tests.web.launch.form import ADDRESS, given, plan_of
from tests.web.screen import parse

pytestmark = pytest.mark.one_database
RUBRIC = {"criteria": [{"id": "good", "weight": 1.0, "description": "Is it good?"}]}
JUDGED = {"judge": {"rubric": RUBRIC, "pass_threshold": 0.7}}
GATE = {"type": "file_exists", "path": "out.txt"}


@pytest.fixture
def asks(project: Project):
    """Return a function that makes a suite whose scenarios ask for a judge, with these gates."""
    make_target(project)

    def make(*gates: dict[str, str]):
        return make_suite(project, ["create"], name="Basics", criteria={**JUDGED, "gates": list(gates)})

    return make


def worker(*, has_judge: bool) -> None:
    Worker.objects.create(name=f"w{has_judge}", seen=timezone.now(), has_judge=has_judge)


def test_start_is_refused_beside_the_button(signed_in, asks):
    asks()
    worker(has_judge=False)
    plan = plan_of(signed_in())
    assert "3 of 3 trials can't be judged, because nothing names a judge (create)" in plan
    assert "--no-judge" in plan
    response = signed_in().post(ADDRESS, given(start="yes"))
    assert response.status_code == 422
    assert "can't be judged" in parse(response).region("Plan").text
    assert not Run.objects.exists()
    data = given(start="yes")
    del data["judge"]
    signed_in().post(ADDRESS, data)
    assert Run.objects.count() == 1


def test_a_workers_own_judge_counts(signed_in, asks):
    asks()
    worker(has_judge=False)
    worker(has_judge=True)
    assert "can't be judged" not in plan_of(signed_in())
    signed_in().post(ADDRESS, given(start="yes"))
    assert Run.objects.count() == 1


def test_without_a_worker_the_plan_warns_and_the_run_is_queued(signed_in, asks):
    asks()
    assert "can't be judged" in plan_of(signed_in())
    signed_in().post(ADDRESS, given(start="yes"))
    assert Run.objects.get().state == "queued"


def test_where_gates_decide_it_starts_with_the_number(signed_in, asks):
    asks(GATE)
    worker(has_judge=False)
    assert "3 of 3 trials can't be judged" in plan_of(signed_in())
    signed_in().post(ADDRESS, given(start="yes"))
    assert Run.objects.count() == 1


def test_a_judge_of_no_such_name_is_refused_with_the_nearest(signed_in, asks):
    asks()
    assert "Did you mean 'gpt-4o-mini'?" in plan_of(signed_in(), judge_model="gpt-4o-mni")
    assert "can't be judged" not in plan_of(signed_in(), judge_model="gpt-4o-mini")
    assert "can't be judged" not in plan_of(signed_in(), judge_model="default")
