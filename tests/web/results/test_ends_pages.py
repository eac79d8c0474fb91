"""Pages say how the ends of commands are known, and what isn't counted."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.model import Event, Transcript
from evaluators.tool_use.interaction import RULES_VERSION
from runs.compare.comparison import compare_with_baseline
from runs.models import CommandRecord, TranscriptRecord, Trial
from runs.models.trial import transcript_row
from runs.results.counting import NOT_COMPARED, NOT_RECORDED
from scenarios.models import SuiteVersion
from tests.builders import close, make_guidance, make_run, make_suite, make_trial, score
from tests.web.screen import Part, parse

pytestmark = pytest.mark.one_database


@pytest.fixture
def version(project) -> SuiteVersion:
    return make_suite(project, ("create",))


def metrics(**changes: Any) -> dict[str, Any]:
    return {
        "available": True,
        "source": "stream",
        "rules": RULES_VERSION,
        "total_commands": 19,
        "known": 12,
        "unknown_exit": 7,
        "error_count": 3,
        "error_rate": 0.25,
        "first_try_success_rate": 0.75,
        "help_seeking": 0,
        "subcommands": [{"name": "add", "calls": 19, "errors": 3, "first_tries": 9, "unknown": 7}],
        **changes,
    }


def trial_of(version: SuiteVersion, **changes: Any) -> Trial:
    own = metrics(**changes)
    rows = [
        score("interaction", "error_rate", own["error_rate"]),
        score("interaction", "first_try_success_rate", own["first_try_success_rate"]),
        score("interaction", "total_commands", float(own["total_commands"])),
    ]
    return make_trial(make_run(version), scores=rows, detail={"interaction": own})


FEW = {
    "known": 2,
    "unknown_exit": 17,
    "error_count": 0,
    "error_rate": 0.0,
    "subcommands": [{"name": "add", "calls": 19, "errors": 0, "first_tries": 2, "unknown": 17}],
}
OTHERS = {"not_run": 2, "indirect": 34, "indirect_by": {"make": 34}, "mentioned": 5}


def run_page(client, trial: Trial):
    return parse(client.get(f"/p/tools/runs/{close(trial.run).pk}/"))


def test_known_and_unknown_ends_are_beside_each_other(signed_in, version):
    trial = trial_of(version)
    page = run_page(signed_in(), trial).region("Layer 1, interaction")
    assert "7 of 19 unknown." in page and "n/a" not in page
    shown = parse(signed_in().get(f"/p/tools/trials/{trial.pk}/"))
    assert shown.facts["exit codes"] == "7 of 19 unknown" and shown.facts["first-try success"] == "9/12"


def test_unknown_ends_that_printed_an_error_are_linked(signed_in, version):
    trial = trial_of(version, printed_errors=[1])
    events = [
        event
        for n in "12"
        for event in (Event("tool_call", n, "shell", "mt x | tail"), Event("tool_result", n, output="error"))
    ]
    row = transcript_row(trial.pk, Transcript(events=tuple(events), source="events"))
    TranscriptRecord.objects.create(trial=trial, **{k: v for k, v in row.items() if k != "trial"})
    for n in (0, 1):
        CommandRecord.objects.create(trial=trial, n=n, line="mt x", event=2 * n, end="unknown")
    client = signed_in()
    text, address = (
        "7 of 19 unknown, 1 of them printed an error",
        f"/p/tools/trials/{trial.pk}/?part=commands",
    )
    [link] = [
        each for each in run_page(client, trial).region("Layer 1, interaction").all("a") if each.text == text
    ]
    assert link["href"] == address
    shown = parse(client.get(address)).fact("exit codes")
    assert (shown.text, shown.all("a")[0]["href"]) == (text, "#c2")


def test_lines_that_were_not_read_are_said(signed_in, version):
    trial = trial_of(version, unread=3, error_rate=None, first_try_success_rate=None)
    assert "3 shell lines not read in time" in run_page(signed_in(), trial).region("Layer 1, interaction")
    assert "3 shell lines not read in time" in parse(signed_in().get(f"/p/tools/trials/{trial.pk}/"))


def test_below_three_known_ends_there_are_no_rates(signed_in, version):
    trial = trial_of(version, **FEW)
    client = signed_in()
    page = run_page(client, trial)
    layer = page.region("Layer 1, interaction").table("1 Interaction")
    assert [layer.row(name).cell("Mean").text for name in ("Error rate", "First-try success")] == [
        "n/a",
        "n/a",
    ]
    assert page.table("Subcommands").row("add").cell("Error rate").text == "n/a"
    shown = parse(client.get(f"/p/tools/trials/{trial.pk}/"))
    assert shown.facts["first-try success"] == "n/a"
    used = parse(client.get("/p/tools/usage/")).table("Subcommands").row("add")
    assert used.cell("Error rate").text == "n/a" and "2 known" in used.cell("Calls").text


def test_scenarios_with_fewer_than_three_known_ends_have_no_rate(signed_in, version):
    run = make_run(version)
    for known in (2, 0):
        own = [
            score("interaction", name, value)
            for name, value in (("first_try_success_rate", 1.0), ("total_commands", 2.0), ("known", known))
        ]
        make_trial(run, outcome="fail", scores=own, detail={"interaction": metrics(known=known)})
    opened = f"/p/tools/runs/{run.pk}/?open=create"
    close(run)
    shown = parse(signed_in().get(opened)).region("Scenarios, table").text
    assert shown.count("n/a") == 3 and "100 %" not in shown
    make_trial(
        run,
        outcome="fail",
        scores=[score("interaction", "first_try_success_rate", 1.0), score("interaction", "known", 3.0)],
    )
    close(run)
    shown = parse(signed_in().get(opened)).region("Scenarios, table").text
    assert shown.count("n/a") == 2 and shown.count("100 %") == 2


def test_what_is_not_counted_is_shown(signed_in, version):
    trial = trial_of(version, **OTHERS)
    page = run_page(signed_in(), trial).region("Layer 1, interaction")
    assert "2 not run, and 34 calls by make" in page
    assert "5 commands mention the tool and were not counted" in page and "command_pattern" in page
    shown = parse(signed_in().get(f"/p/tools/trials/{trial.pk}/"))
    assert "and 34 calls by make" in shown and "5 commands mention the tool" in shown


def test_text_is_marked_as_estimated(signed_in, version):
    trial = trial_of(version, source="transcript", estimated=12)
    CommandRecord.objects.create(trial=trial, n=0, line="mt add", exit_code=0, end="estimated")
    client = signed_in()
    shown = parse(client.get(f"/p/tools/trials/{trial.pk}/"))
    assert shown.facts["Source"] == "transcript text, estimated" and "12 estimated from text" in shown
    assert "estimated" in run_page(client, trial).region("Layer 1, interaction")
    assert "1 run with exit codes estimated from text" in parse(client.get("/p/tools/usage/"))


def test_two_trials_side_by_side_say_how_ends_are_known(signed_in, version):
    text, recorded = (
        trial_of(version, source="transcript", ends="estimated"),
        trial_of(version, source="recorded"),
    )
    for trial, end in ((text, "estimated"), (recorded, "recorded")):
        CommandRecord.objects.create(trial=trial, n=0, line=f"mt add {end}", exit_code=0, end=end)
        close(trial.run)
    shown = parse(signed_in().get(f"/p/tools/trials/{recorded.pk}/against/{text.pk}/"))
    commands = shown.region("Commands, table").text
    assert "mt add estimated est." in commands and "mt add recorded est." not in commands
    assert "Tool use isn't compared: counting rules or source of exit codes changed." in shown


def test_a_recorded_command_without_an_event_is_shown(signed_in, version):
    trial = trial_of(version, source="recorded")
    events = (Event("tool_call", "1", "shell", "ls"), Event("tool_result", "1", output="a", exit_code=0))
    row = transcript_row(trial.pk, Transcript(events=events, source="events"))
    TranscriptRecord.objects.create(trial=trial, **{k: v for k, v in row.items() if k != "trial"})
    CommandRecord.objects.create(
        trial=trial, n=0, line="mt add x", exit_code=3, failed=True, end="recorded", seconds=1.25
    )
    shown = parse(signed_in().get(f"/p/tools/trials/{trial.pk}/"))
    assert "mt add x" in shown and "exit 3" in shown and "no event of the agent shows this command" in shown
    assert "1.2 s" in shown or "1.3 s" in shown


def test_a_comparison_names_its_source(signed_in, version):
    before = close(trial_of(version).run)
    after = close(trial_of(version, **metrics(source="recorded")).run)
    compare_with_baseline(after)
    client = signed_in()
    sentence = NOT_COMPARED
    assert sentence in parse(client.get(f"/p/tools/compare/?runs={before.pk},{after.pk}"))
    assert sentence in parse(client.get(f"/p/tools/runs/{after.pk}/"))


WHY = "this machine can't: seccomp is not allowed."


def test_pages_say_why_the_tool_was_not_recorded(signed_in, version):
    trial = trial_of(version)
    trial.detail["notes"] = ["Another note.", NOT_RECORDED + WHY]
    trial.save()
    client = signed_in()
    shown = parse(client.get(f"/p/tools/trials/{trial.pk}/"))
    assert f"Not recorded: {WHY}" in shown and "Another note." not in shown
    layer = run_page(client, trial).region("Layer 1, interaction")
    assert f"Not recorded (1 of 1 trial): {WHY}" in layer
    trial.run.warnings = [f"The tool is not recorded: {WHY} Its commands come from the agent's own events."]
    trial.run.save()
    assert parse(client.get(f"/p/tools/runs/{trial.run_id}/")).count(WHY) == 1


def test_rates_without_the_commands_of_sub_agents_are_not_zero(signed_in, version):
    trial = trial_of(version, error_rate=None, first_try_success_rate=None)
    shown = parse(signed_in().get(f"/p/tools/trials/{trial.pk}/"))
    assert shown.facts["first-try success"] == "n/a"
    assert shown.fact("first-try success").all("abbr")[0]["title"] == "Some commands are missing"
    assert shown.table("Interaction").row("Error rate").cell("This trial").text == "n/a"


def test_medians_are_of_trials_with_the_same_kind_of_source(signed_in, version):
    for rate, source in ((0.5, "transcript"), (0.75, "stream"), (0.25, "recorded")):
        close(trial_of(version, source=source, error_rate=rate).run)
    trial = trial_of(version, source="transcript")
    row = parse(signed_in().get(f"/p/tools/trials/{trial.pk}/")).table("Interaction").row("Error rate")
    assert row.cell("Earlier median").text == "50 % 1 trial"


def test_the_guidance_matrix_says_that_commands_are_counted_differently(signed_in, version):
    guidance, client = make_guidance(version.suite), signed_in()

    def matrix() -> Part:
        return parse(client.get("/p/tools/guidance/?suite=basics"))

    for own in (metrics(), metrics(source="recorded")):
        run = make_run(version, guidance=guidance)
        make_trial(run, detail={"interaction": own})
        assert "counted in different ways" not in matrix()
        close(run)
    assert (
        f"not comparable between them: rules {RULES_VERSION}, recorded; rules {RULES_VERSION}, reported."
        in matrix()
    )


def test_estimated_rates_are_marked_in_lists(signed_in, version):
    client = signed_in()
    pages = []
    for changes in ({"source": "transcript", "ends": "estimated", "estimated": 12}, {}):
        run = close(trial_of(version, **changes).run)
        for address in (f"/p/tools/runs/{run.pk}/", "/p/tools/"):
            pages.append("est." in parse(client.get(address)).text)
    assert pages == [True, True, False, False]
