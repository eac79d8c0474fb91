"""A trial beside the baseline's trial of its scenario."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from scenarios.models import ScenarioVersion
from tests.builders import close, make_project, make_run, make_suite, make_trial
from tests.trial_parts import make_command, make_transcript, shell
from tests.web.html import main_of, parse
from tests.web.trials.pages import HOSTILE, SHOWN, address, page


@pytest.fixture
def base(run):
    return make_trial(make_run(run.suite_version), outcome="pass")


def against(client, new, base):
    return client.get(address(new, f"against/{base.pk}/"))


def did(trial, *lines, code=0):
    make_transcript(trial, [event for n, line in enumerate(lines) for event in shell(line, "", code, n)])
    for n, line in enumerate(lines):
        make_command(trial, n, line, exit_code=code, failed=bool(code), event=2 * n)


def test_a_trial_leads_to_the_baselines_trial_of_its_scenario(signed_in, run, base):
    close(base.run)
    trial = make_trial(run, outcome="fail")
    Run.objects.filter(pk=run.pk).update(baseline=base.run)
    text = page(signed_in("viewer"), trial)
    assert text.link("Compare with a baseline trial").address == address(trial, f"against/{base.pk}/")


def test_a_trial_without_a_finished_baseline_has_no_link(signed_in, run, base):
    client = signed_in()
    assert "Compare with a baseline trial" not in page(client, make_trial(run, outcome="fail"))
    Run.objects.filter(pk=run.pk).update(baseline=base.run)
    assert "Compare with a baseline trial" not in page(client, make_trial(run, outcome="", state="running"))


def test_the_way_to_the_baseline_costs_no_query(signed_in, run, base, django_assert_num_queries):
    trial = make_trial(run, outcome="fail")
    client = signed_in()
    page(client, trial)
    with CaptureQueriesContext(connection) as alone:
        page(client, trial)
    Run.objects.filter(pk=run.pk).update(baseline=base.run)
    with django_assert_num_queries(len(alone)):
        assert "Compare with a baseline trial" in page(client, trial)


def test_the_first_command_that_differs_is_marked(signed_in, run, base):
    did(base, "tool list", "tool export --json", "jq . out.json")
    did(new := make_trial(run, outcome="fail"), "tool list", "tool export --format json", code=2)
    response = against(signed_in(), new, base)
    compared, text = response.context["compared"], parse(response)
    assert [pair.is_apart for pair in compared.pairs] == [False, True, True]
    assert "first difference at command 2" in text
    rows = text.table("Commands").rows
    assert ["is-apart" in row.classes for row in rows] == [False, True, False]
    assert rows[1].cell("New").text == "✕ failed tool export --format json exit 2"
    assert rows[1].link("tool export --json").address == f"{address(base)}?part=commands&from=0#c2"
    assert rows[2].cell("New").text == "–"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ((), "no commands in either trial"),
        (("a",), "identical (1 command)"),
        (("a", "b"), "identical (2 commands)"),
    ],
)
def test_identical_commands_are_summarised(signed_in, run, base, lines, sentence):
    new = make_trial(run)
    for trial in (base, new):
        did(trial, *lines)
    assert sentence in against(signed_in(), new, base).content.decode()


def test_commands_that_do_not_fit_a_page_are_counted(signed_in, run, base):
    new = make_trial(run)
    for trial in (base, new):
        did(trial, *["tool list"] * 205)
    text = parse(against(signed_in(), new, base))
    assert "first 200 commands identical" in text
    assert "5 more on the trial pages." in text


def test_gates_are_paired_by_what_they_check(signed_in, run, base):
    def gate(path, *, passed):
        told = {"layer": "gates", "name": "file_exists", "value": float(passed), "passed": passed}
        return {**told, "message": "" if passed else f"{path} is missing.", "detail": {"path": path}}

    base.scores = [gate("a.txt", passed=True), gate("b.txt", passed=True)]
    base.save()
    new = make_trial(run, scores=[gate("b.txt", passed=False), gate("c.txt", passed=True)])
    found = against(signed_in(), new, base).context["compared"].gates
    told = [
        (each.gate["detail"]["path"], each.base and each.base["passed"], each.new and each.new["passed"])
        for each in found
    ]
    assert told == [("b.txt", True, False), ("c.txt", None, True), ("a.txt", True, None)]


def test_measures_of_either_side_are_shown(signed_in, run, base):
    new = make_trial(run, seconds=2.5, cost_usd=None)
    base.seconds, base.cost_usd, base.tokens_in = None, 0.25, None
    base.save()
    told = {each.label: each[2:] for each in against(signed_in(), new, base).context["compared"].measures}
    assert told["Time"] == (None, 2.5)
    assert told["Cost"] == (0.25, None)
    assert "Input tokens" not in told


def test_a_changed_scenario_is_not_comparable(signed_in, run, base):
    old = base.scenario_version
    base.scenario_version = ScenarioVersion.objects.create(
        scenario=old.scenario,
        sha256="f" * 64,
        content=old.content,
        task_hash="other",
        gates_hash=old.gates_hash,
    )
    base.save()
    text = parse(against(signed_in(), make_trial(run), base))
    assert "! Not comparable" in text
    assert "scenario's task changed" in text


def test_agents_texts_are_escaped(signed_in, run, base):
    did(base, HOSTILE)
    new = make_trial(run, outcome="error", error=HOSTILE, answer=HOSTILE)
    text = main_of(against(signed_in(), new, base))
    assert text.count(SHOWN) == 3
    assert text.all("script") == []


def test_only_trials_of_one_scenario_are_compared(signed_in, run, base):
    client, new = signed_in(), make_trial(run)
    other = make_trial(make_run(make_suite(run.project, ("list",), name="Other")), "list")
    stranger = make_trial(make_run(make_suite(make_project("other"), ("export",))), "export")
    for wrong in (new, other, stranger):
        assert against(client, new, wrong).status_code == 404
    assert against(client, new, base).status_code == 200


def test_it_makes_few_queries(signed_in, run, base, django_assert_max_num_queries):
    client, new = signed_in(), make_trial(run)
    # Session, user, access, both trials, their commands, the menu's projects, the untriaged.
    with django_assert_max_num_queries(8):
        against(client, new, base)
