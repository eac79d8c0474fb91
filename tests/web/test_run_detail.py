"""One run: finished, running, not prepared, cancelled."""

from __future__ import annotations

import json
import re

import pytest
from django.utils import timezone

from runs.baselines import set_baseline
from runs.claims import MOST_STARTS
from runs.models import RunDigest, Trial
from runs.reports.console import summary
from runs.reports.document import run_digest
from tests.builders import (
    INTERACTION,
    close,
    make_judging,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
    used,
)
from tests.runs.carrying import launch, lose_preparations


@pytest.fixture
def version(project):
    return make_suite(project, ("create", "export"), name="Basics")


def address(run, part=""):
    return f"/p/tools/runs/{run.pk}/{part}"


def page(client, run, query=""):
    return client.get(address(run) + query).content.decode()


def test_it_works(signed_in, version):
    run = make_run(version, fingerprint={"tool": "taskmgr 2.4.0"})
    make_trial(run, "create", outcome="fail", detail=used({"name": "import", "calls": 10, "errors": 5}))
    make_judging(make_trial(run, "export"))
    text = page(signed_in(), close(run))
    for expected in (
        "1 trial failed",
        "First-try success",
        "file_exists",
        "Guessed a flag.",
        "Opened help after the failure.",
        "import",
        "heat-5",
        "out.txt does not exist.",
        "taskmgr 2.4.0",
    ):
        assert expected in text


def test_a_run_without_gates_says_so(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", scores=[])
    closed, still = page(signed_in(), close(run)), page(signed_in(), make_run(version, state="queued"))
    # A layer's head has something on both sides: what stands alone goes to the right.
    assert ("No gate decided in this run." in closed, "No gate decided yet." in closed) == (True, False)
    assert all('<h3>2 Gates</h3><span class="muted">0 of 0 trials</span>' in text for text in (closed, still))
    assert "No gate decided yet." in still


def test_it_counts_gates_over_trials(signed_in, version):
    run = make_run(version)
    for outcome in ("pass", "pass", "fail"):
        make_trial(run, "create", outcome=outcome)
    text = page(signed_in(), close(run))
    assert '2<span class="of">/3</span>' in text
    assert "2 of 3 passed" in text


def test_errors_are_left_out_of_the_rate(signed_in, version):
    run = make_run(version)
    make_trial(run, "create")
    make_trial(run, "create", outcome="error", error="No answer from the provider.")
    text = page(signed_in(), close(run))
    assert '100.0%<span class="of">1/1</span>' in text
    assert "No answer from the provider." in text
    assert "Errors are left out of every rate." in text


def test_it_says_what_was_lost_since_the_baseline(signed_in, version):
    before = make_run(version)
    make_trial(before, "create")
    run = make_run(version, baseline=before)
    make_trial(run, "create", outcome="fail")
    text = page(signed_in(), close(run))
    assert "1 scenario no longer passes" in text
    assert "▼ worse" in text


def test_it_says_why_a_run_could_not_be_prepared(signed_in, version):
    run = make_run(version, error="No executable 'codex' on PATH. Install it on the worker.", outcome="error")
    text = page(signed_in(), run)
    assert "This run could not be prepared" in text
    assert "No executable &#39;codex&#39; on PATH." in text


def test_it_says_that_the_preparation_ended_its_workers(signed_in, version):
    make_target(version.suite.project)
    run = launch(version).runs.get()
    lose_preparations(run, MOST_STARTS)
    reason = "The worker was lost 5 times while it prepared this run."
    text = page(signed_in(), run)
    assert "This run could not be prepared" in text
    assert reason in text
    assert reason in summary(run_digest(run.pk, most=1))


def test_it_shows_warnings(signed_in, version):
    assert "The judge judges itself." in page(
        signed_in(), make_run(version, warnings=["The judge judges itself."])
    )


def test_it_groups_the_diagnosis_over_trials(signed_in, version):
    run = make_run(version)
    finding = {"pattern": "high_retry_rate", "sentence": "Many retries.", "evidence": ["4 of 5 calls"]}
    for _ in range(2):
        make_trial(run, "create", detail={"interaction": INTERACTION, "diagnosis": [finding]})
    text = page(signed_in(), run)
    assert "High retry rate" in text
    assert "2 trials:" in text


def test_a_chip_narrows_the_scenarios(signed_in, version):
    run = make_run(version)
    make_trial(run, "create", outcome="fail")
    make_trial(run, "export")
    response = signed_in().get(address(run) + "?show=failing")
    assert [row.key for row in response.context["rows"]] == ["create"]


def test_a_scenario_that_went_well_opens_when_it_is_asked_for(signed_in, version):
    run = make_run(version)
    trial = make_trial(run, "create")
    client = signed_in()
    assert f"/p/tools/trials/{trial.pk}/" not in page(client, run)
    assert f"/p/tools/trials/{trial.pk}/" in page(client, run, "?open=create")


def test_htmx_gets_the_scenarios_alone(signed_in, version):
    run = make_run(version)
    make_trial(run)
    headers = {"HX-Request": "true", "HX-Target": "trials"}
    text = signed_in().get(address(run), headers=headers).content.decode()
    assert "<html" not in text
    assert "Scenarios and trials" in text


@pytest.fixture
def running(version):
    run = make_run(version, state="running", started=timezone.now())
    make_trial(run, "create")
    make_trial(run, "export", outcome="", state="running", started=timezone.now())
    make_trial(run, "export", outcome="")
    return run


def test_a_running_run_asks_for_its_progress_every_two_seconds(signed_in, running):
    text = page(signed_in(), running)
    assert "1 of 3 trials are done" in text
    assert f'hx-get="{address(running, "progress/")}" hx-trigger="every 2s"' in text
    assert "Cancel run" in text


def test_progress_is_a_fragment(signed_in, running):
    response = signed_in().get(address(running, "progress/"), headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response.content.decode().lstrip().startswith("<section")


def test_progress_stops_the_polling_at_the_end(signed_in, version):
    run = make_run(version)
    make_trial(run)
    response = signed_in().get(address(run, "progress/"), headers={"HX-Request": "true"})
    assert (response.status_code, response.headers["HX-Refresh"]) == (286, "true")
    assert "every 2s" not in response.content.decode()


def test_cancelling_stops_what_waits(signed_in, running):
    assert signed_in("runner").post(address(running, "cancel/")).url == address(running)
    running.refresh_from_db()
    assert running.cancel_requested
    assert list(Trial.objects.filter(run=running, state="queued")) == []


def test_cancelling_what_is_over_says_so(signed_in, version):
    run = make_run(version)
    client = signed_in()
    response = client.post(address(run, "cancel/"), follow=True)
    assert "is over, so there is nothing to cancel." in response.content.decode()


def test_viewers_do_not_cancel(signed_in, running):
    assert signed_in("viewer").post(address(running, "cancel/")).status_code == 403


def test_cancelling_takes_a_post(signed_in, running):
    assert signed_in().get(address(running, "cancel/")).status_code == 405


def test_nobody_cancels_runs_of_another_project(signed_in, running):
    other = signed_in(of=make_project("other"))
    assert other.post(f"/p/other/runs/{running.pk}/cancel/").status_code == 404


def test_it_makes_as_many_queries_for_many_trials_as_for_few(
    signed_in, version, django_assert_max_num_queries
):
    run = make_run(version)
    for _ in range(12):
        make_judging(make_trial(run, "create"))
    close(run)
    client = signed_in()
    with django_assert_max_num_queries(9):
        client.get(address(run))


def test_many_scenarios_are_shown_in_parts(signed_in, project):
    keys = tuple(f"case-{n:02}" for n in range(60))
    run = make_run(make_suite(project, keys))
    for key in keys:
        make_trial(run, key)
    client = signed_in()
    first, second = page(client, run), page(client, run, "?from=50")
    assert "case-49" in first
    assert "case-50" not in first
    assert "from=50#trials" in first
    assert "case-59" in second
    assert "Next scenarios" not in second


def test_a_run_with_a_baseline_that_is_one_takes_at_most_ten_queries(
    signed_in, version, django_assert_max_num_queries
):
    before = make_run(version)
    make_trial(before, "create")
    run = make_run(version, baseline=close(before))
    make_trial(run, "create", outcome="fail")
    client, run = signed_in(), close(run)
    set_baseline(run, by=None)
    with django_assert_max_num_queries(10):
        page(client, run)


def test_it_shows_what_each_evaluator_scores(signed_in, version):
    run = make_run(version)
    for score in (0.4, 0.6):
        scores = [
            {"layer": "evaluators", "name": "trajectory", "value": 1.0, "passed": None, "message": ""},
            {"layer": "evaluators", "name": "score", "value": score, "passed": False, "message": "Below 1."},
        ]
        make_trial(run, "create", outcome="fail", scores=scores)
    layers = signed_in().get(address(close(run))).context["layers"]
    assert [(mean.name, mean.mean) for mean in layers.evaluators] == [("score", 0.5), ("trajectory", 1.0)]
    assert "Mean scores of the evaluators" in page(signed_in(), run)


def subcommand(text, name):
    """Return the cells of a subcommand's row."""
    row = text.partition(f'<th scope="row" class="mono">{name}</th>')[2].partition("</tr>")[0]
    return re.findall(r"<td[^>]*>(.*?)</td>", row)


def test_a_subcommand_says_how_often_it_was_tried_and_what_went_wrong(signed_in, version):
    run = make_run(version)
    counts = {"name": "export", "calls": 8, "errors": 4, "first_tries": 2}
    make_trial(
        run,
        "create",
        detail=used(counts, export={"tries": {"1": 1, "3": 2}, "errors": {"no flag": 3, "no": 1}}),
    )
    make_trial(run, "export", detail=used(counts, export={"tries": {"2": 1}, "errors": {"no": 1}}))
    rows = page(signed_in(), close(run))
    cells = subcommand(rows, "export")
    assert cells[:3] == ["16", "0.50", "0.25"]
    assert cells[-2:] == ["2.5", 'no flag<span class="of">3 times</span>']
    assert len(cells) == 7


def test_a_subcommand_stands_against_the_baselines(signed_in, version):
    before, run = make_run(version), make_run(version)
    rates = {"export": (1, 4), "list": (3, 1), "create": (2, 2)}
    for place, each in enumerate((before, run)):
        rows = [{"name": name, "calls": 10, "errors": errors[place]} for name, errors in rates.items()]
        make_trial(each, "create", detail=used(*rows, *([{"name": "new", "calls": 9}] if place else [])))
    run.baseline = close(before)
    run.save()
    text = page(signed_in(), close(run))
    changes = {name: subcommand(text, name)[2] for name in (*rates, "new")}
    assert changes == {"export": "▲ 0.30", "list": "▼ 0.20", "create": "= 0", "new": "·"}


@pytest.mark.parametrize("lacks", ["run", "baseline"])
def test_subcommands_of_older_digests_come_from_the_rollups(signed_in, version, lacks):
    before, run = make_run(version), make_run(version)
    for each, errors in ((before, 1), (run, 4)):
        counts = {"name": "export", "calls": 10, "errors": errors}
        make_trial(each, "create", detail=used(counts, export={"tries": {"2": 1}, "errors": {"no": 1}}))
        close(each)
    run.baseline = before
    run.save()
    digest = RunDigest.objects.get(run=run if lacks == "run" else before)
    content = json.loads(bytes(digest.content))
    assert content.pop("subcommands")
    digest.content = json.dumps(content).encode()
    digest.save()
    cells = subcommand(page(signed_in(), run), "export")
    assert cells[1:3] == ["0.40", "▲ 0.30"]
    assert cells[-2:] == (["·", "·"] if lacks == "run" else ["2.0", 'no<span class="of">1 time</span>'])


def test_hostile_messages_of_a_tool_stay_text(signed_in, version):
    run = make_run(version)
    hostile = "</td><script>alert(1)</script>\u202e\x1b[31m"
    counts = {"name": hostile, "calls": 8, "errors": 4}
    make_trial(run, detail=used(counts, **{hostile: {"tries": {}, "errors": {hostile: 3}}}))
    text = page(signed_in(), close(run))
    assert text.count("&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩␛[31m") == 2
    assert "<script>alert" not in text


def test_an_open_run_shows_its_subcommands_so_far(signed_in, version):
    run = make_run(version, state="running")
    make_trial(run, "create", detail=used({"name": "export", "calls": 8, "errors": 4}))
    assert subcommand(page(signed_in(), run), "export")[:2] == ["8", "0.50"]
