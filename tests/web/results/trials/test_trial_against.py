"""A trial beside the baseline's trial of its scenario."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.models import Run
from scenarios.models import ScenarioVersion
from tests.builders import close, make_project, make_run, make_suite, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript
from tests.web.results.trials.pages import HOSTILE, SHOWN, address, page
from tests.web.screen import main_of, parse

pytestmark = pytest.mark.one_database


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
    text = parse(against(signed_in(), new, base))
    assert "first difference at command 2" in text
    rows = text.table("Commands").rows
    assert [row.cells[0].text for row in rows] == ["1", "2 first difference", "3"]
    assert ["is-apart" in row.classes for row in rows] == [False, True, False]
    assert rows[0].texts[1:] == ["✓ succeeded tool list", "✕ failed tool list exit 2"]
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
        score = {"layer": "gates", "name": "file_exists", "value": float(passed), "passed": passed}
        return {**score, "message": "" if passed else f"{path} is missing.", "detail": {"path": path}}

    base.scores = [gate("a.txt", passed=True), gate("b.txt", passed=True)]
    base.save()
    new = make_trial(run, scores=[gate("b.txt", passed=False), gate("c.txt", passed=True)])
    rows = parse(against(signed_in(), new, base)).table("Gates").rows
    assert [row.texts for row in rows] == [
        ["file_exists b.txt", "✓ passed", "✕ failed b.txt is missing."],
        ["file_exists c.txt", "–", "✓ passed"],
        ["file_exists a.txt", "✓ passed", "–"],
    ]


def test_measures_of_either_side_are_shown(signed_in, run, base):
    new = make_trial(run, seconds=2.5, cost_usd=None)
    base.seconds, base.cost_usd, base.tokens_in = None, 0.25, None
    base.save()
    table = parse(against(signed_in(), new, base)).table("Measures")
    assert table.row("Time").texts == ["Time", "–", "2.5 s"]
    assert table.row("Cost").texts == ["Cost", "$0.25", "–"]
    assert "Input tokens" not in table.row_names


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


def test_trials_of_two_scenarios_compare_with_a_warning(signed_in, run, base):
    other = make_trial(make_run(make_suite(run.project, ("list",), name="Other")), "list")
    text = parse(against(signed_in(), make_trial(run), other))
    assert "! Not comparable: these are trials of two scenarios, list and export." in text


def test_a_trial_compares_with_no_stranger_and_not_with_itself(signed_in, run):
    client, new = signed_in(), make_trial(run)
    stranger = make_trial(make_run(make_suite(make_project("other"), ("export",))), "export")
    for wrong in (new, stranger):
        assert against(client, new, wrong).status_code == 404


def test_a_trial_leads_to_the_others_of_its_run_and_to_any(signed_in, run):
    new, other = make_trial(run, index=0), make_trial(run, index=1)
    client = signed_in("viewer")
    text = page(client, new)
    assert text.link("Trial 2 of this run").address == address(new, f"against/{other.pk}/")
    response = client.get(address(new, f"against/?base={other.pk}"))
    assert (response.status_code, response.url) == (302, address(new, f"against/{other.pk}/"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("999999", "There is no trial “999999” in this project."),
        ("x", "There is no trial “x” in this project."),
        ("", "There is no trial “” in this project."),
        ("{own}", "That is the same trial."),
    ],
)
def test_a_trial_that_cannot_be_compared_is_refused(signed_in, run, given, sentence):
    new = make_trial(run)
    response = signed_in().get(address(new, f"against/?base={given.format(own=new.pk)}"))
    assert response.status_code == 404
    assert f"{sentence} Enter another trial's number, as on its page." in parse(response)


def test_other_calls_stay_between_the_aligned_commands(signed_in, run, base):
    new = make_trial(run, outcome="fail")
    calls = ["cat a.md", "tool add", "tool list"], ["cat a.md", "tool make", "tool add", "ls", "tool drop"]
    for trial, lines in zip((base, new), calls, strict=True):
        make_transcript(trial, [event for n, line in enumerate(lines) for event in shell(line, "", 0, n)])
        for n, line in enumerate(lines):
            if line.startswith("tool"):
                make_command(trial, n, line, subcommand=line.split()[1], exit_code=0, event=2 * n)
    rows = parse(against(signed_in(), new, base)).table("Commands").rows
    found = [(row.cell("Base").text, row.cell("New").text) for row in rows]
    assert [tuple(cell.replace("✓ succeeded ", "") for cell in row) for row in found] == [
        ("cat a.md", "cat a.md"), ("–", "tool make"), ("tool add", "tool add"), ("–", "ls"), ("tool list", "tool drop"),
    ]  # fmt: skip
    assert ["is-apart" in row.classes for row in rows] == [False, True, False, False, False]


def test_answers_are_shown_as_a_text_difference(signed_in, run, base):
    base.answer = "Done.\nTwo files."
    base.save()
    text = parse(against(signed_in(), make_trial(run, answer="Done.\nOne file."), base))
    table = text.table("Answers")
    assert "− Two files." in table
    assert "+ One file." in table
    same = make_trial(run, answer=base.answer)
    assert "The answers are identical." in parse(against(signed_in(), same, base))


def test_what_the_judge_says_is_side_by_side(signed_in, run, base):
    new = make_trial(run, outcome="fail")
    make_judging(base, content={"reasoning": "Followed the guide."})
    make_judging(new, content={"reasoning": "Ignored the guide."})
    text = parse(against(signed_in(), new, base))
    row = text.table("Judge").row("Score")
    assert (row.cell("Base").text, row.cell("New").text) == ("0.80", "0.40")
    assert "Followed the guide." in text
    assert "Ignored the guide." in text


def test_two_trials_are_csv_at_the_same_address(signed_in, run, base):
    did(base, "tool list", "tool export --json")
    did(new := make_trial(run, outcome="fail"), "tool list", code=2)
    client = signed_in("viewer")

    def csv(table):
        query = f"against/{base.pk}/?format=csv&table={table}"
        return b"".join(client.get(address(new, query)).streaming_content).decode().splitlines()

    assert csv("commands")[1:] == [
        "1,tool list,0,false,tool list,2,true,true", "2,tool export --json,0,false,,,,false",
    ]  # fmt: skip
    assert csv("gates")[1].startswith("gates,file_exists,,,false,")
    assert any(line.startswith("Judge score,") for line in csv("measures"))
