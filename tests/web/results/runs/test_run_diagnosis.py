"""The diagnosis of a run: its trials, scenarios and commands, its thresholds, and what people say of it."""

from __future__ import annotations

import pytest

from runs.models import DiagnosisReview, Run
from tests.builders import close, interaction_scores, make_run, make_trial, used
from tests.web.results.runs.pages import address, page

pytestmark = pytest.mark.one_database

CALLED = [
    {"name": "list", "calls": 9, "errors": 0},
    {"name": "export", "calls": 9, "errors": 3},
    {"name": "import a/b", "calls": 9, "errors": 5, "retries_after_failure": 3},
]
PATTERN = "errors-without-help"


def diagnosed(version, *called, **changes):
    run = make_run(version, **changes)
    for key, own in (("create", called or CALLED), ("export", [{"name": "list", "calls": 9}])):
        detail = used(*own)
        make_trial(run, key, detail=detail, scores=interaction_scores(detail["interaction"]))
    return close(run)


def finding(client, run, title="Errors without help"):
    return page(client, run).region(title)


def test_a_finding_names_trials_scenarios_and_commands(signed_in, version):
    shown = finding(signed_in(), diagnosed(version))
    assert "1 of 2 trials, 1 of 2 scenarios" in shown
    assert "import a/b: 5 of 9 failed in 1 trial, 1 scenario" in shown
    assert "export: 3 of 9 failed" in shown
    assert "Thresholds: error rate ≥ 25 %, help calls ≥ 3. Only the error rate was exceeded." in shown
    links = [each["hx-get"] for each in shown.all("a[hx-get]")]
    assert links == ["?failing=import%20a%2Fb", "?failing=export"]


def test_retries_name_their_subcommand(signed_in, version):
    shown = finding(signed_in(), diagnosed(version), "Retries on a command")
    assert "import a/b: 3 of 9 were retries in 1 trial" in shown


def test_the_projects_thresholds_decide(signed_in, project, version):
    project.diagnosis_thresholds = {"error_rate": 0.9, "retries": 50}
    project.save()
    shown = page(signed_in(), diagnosed(version))
    assert "Errors without help" not in shown


def test_history_of_twenty_runs_of_the_same_counting_sets_thresholds(signed_in, version):
    for _ in range(20):
        diagnosed(version, {"name": "add", "calls": 10, "errors": 6})
    run = diagnosed(version, {"name": "add", "calls": 10, "errors": 3})
    shown = page(signed_in(), run)
    assert "Errors without help" in shown and "error rate ≥ 30 %" in shown
    assert "Thresholds from the upper quartile of 20 earlier runs." in shown
    # Runs of other counting rules set none.
    Run.objects.update(counting={"all": ["2", "reported", False]})
    diagnosed(version, {"name": "add", "calls": 10, "errors": 6})
    run = diagnosed(version, {"name": "add", "calls": 10, "errors": 3})
    assert "Thresholds: error rate ≥ 25 %" in page(signed_in(), run)


@pytest.mark.parametrize(("word", "stored"), [("right", [True]), ("wrong", [False])])
def test_a_person_says_whether_a_finding_is_right(signed_in, version, word, stored):
    client, run = signed_in("runner"), diagnosed(version)
    assert "not reviewed yet" in finding(client, run)
    client.post(address(run, f"diagnosis/{PATTERN}/"), {"word": word})
    assert list(DiagnosisReview.objects.values_list("is_right", flat=True)) == stored
    pressed = finding(client, run).all("[aria-pressed=true]")
    assert [each.text for each in pressed] == [f"{word.capitalize()}: Errors without help"]
    client.post(address(run, f"diagnosis/{PATTERN}/"), {"word": ""})
    assert not DiagnosisReview.objects.exists()


def test_a_rules_precision_counts_over_runs(signed_in, version):
    client = signed_in("runner")
    for word in ("right", "right", "wrong"):
        client.post(address(diagnosed(version), f"diagnosis/{PATTERN}/"), {"word": word})
    shown = finding(client, Run.objects.last())
    assert "right in 2 of 3 reviewed runs (95 % interval 21 % to 94 %)" in shown


def test_only_stored_findings_are_reviewed(signed_in, version):
    client, run = signed_in("runner"), diagnosed(version)
    answer = client.post(address(run, "diagnosis/many-commands/"), {"word": "right"}, follow=True)
    assert f"Run {run.pk} has no finding" in answer.content.decode()
    assert (
        signed_in("viewer").post(address(run, f"diagnosis/{PATTERN}/"), {"word": "right"}).status_code == 403
    )
