"""One trial: passed, failed, waiting, hostile, very long."""

from __future__ import annotations

import pytest

from evaluators.model import Event
from runs.models import Artifact
from tests.builders import make_run, make_trial, score
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript
from tests.web.results.trials.pages import HOSTILE, SHOWN, address, page
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def test_a_missing_judge_is_reported_once(signed_in, run):
    missing = "No judge is chosen."
    judge = {
        "layer": "judge",
        "name": "judge",
        "value": None,
        "passed": None,
        "message": missing,
        "error": True,
    }
    trial = make_trial(run, outcome="fail", error=missing, scores=[judge])
    make_judging(trial, content={"error": missing})
    text = page(signed_in(), trial)
    assert text.region("Judge").count(missing) == 1
    assert "No commands." in text


@pytest.mark.spec("llm-tool-test", "Layers are reported apart")
def test_it_works(signed_in, run):
    trial = make_trial(run, outcome="fail", answer="I exported 14 tasks.")
    make_judging(trial)
    text = page(signed_in(), trial)
    for expected in (
        "Do export.",
        "I exported 14 tasks.",
        "out.txt does not exist.",
        "Expected a file",
        "It guessed, then read.",
        "Guessed a flag.",
        "confidence 0.80",
        "First-try success",
    ):
        assert expected in text


def test_a_running_trial_shows_its_worker_and_last_command(signed_in, run):
    trial = make_trial(
        run,
        outcome="",
        state="running",
        worker="eval-1:7",
        activity=HOSTILE,
        calls_so_far=7,
        activity_exit_code=2,
    )
    text = page(signed_in(), trial)
    assert text.facts["Worker"] == "eval-1:7"
    assert f"Last command (7 so far): ✕ failed {SHOWN} exit 2" in text


def test_a_trial_that_waits_has_no_worker_and_does_nothing(signed_in, run):
    text = page(signed_in(), make_trial(run, outcome=""))
    assert "Worker" not in text.facts
    assert "Last command" not in text


def test_what_is_not_known_has_no_line(signed_in, run):
    text = page(signed_in(), make_trial(run, outcome="fail"))
    assert "Expected" in text.facts
    assert "Exit code" not in text.facts
    assert "recomputed" not in text


def test_it_marks_attempts_first_tries_and_help(signed_in, run):
    trial = make_trial(run)
    lines = [("tool export --bad", 2), ("tool export --help", 0), ("tool export --good", 0), ("ls", 0)]
    make_transcript(
        trial, [event for n, (line, code) in enumerate(lines) for event in shell(line, "out", code, n)]
    )
    make_command(trial, 1, lines[0][0], subcommand="export", exit_code=2, failed=True, event=0)
    make_command(trial, 2, lines[1][0], subcommand="export", exit_code=0, help=True, event=2)
    make_command(trial, 3, lines[2][0], subcommand="export", exit_code=0, retry_of=1, event=4)
    text = page(signed_in(), trial)
    assert "2 attempts at export, succeeded at attempt 2, opened help" in text
    for mark in ("first try", "? help", "↻ retry 1", "not the tool", "exit 2"):
        assert mark in text


def test_it_shows_commands_found_only_in_the_text(signed_in, run):
    trial = make_trial(run)
    make_command(trial, 1, "tool list", exit_code=None)
    text = page(signed_in(), trial)
    assert "tool list" in text
    assert "exit ?" in text


def test_it_shows_that_a_trial_is_queued(signed_in, run):
    assert "Waiting for a worker." in page(signed_in(), make_trial(run, outcome=""))


@pytest.mark.parametrize("part", ["commands", "messages", "raw"])
def test_hostile_text_stays_text(signed_in, run, part):
    trial = make_trial(run, answer=HOSTILE)
    events = [Event("message", role="assistant", text=HOSTILE), *shell(f"echo {HOSTILE}", HOSTILE)]
    make_transcript(trial, events, text=HOSTILE)
    make_judging(trial, content={"negatives": [HOSTILE], "reasoning": HOSTILE, "raw_answer": HOSTILE})
    text = page(signed_in(), trial, f"?part={part}")
    assert SHOWN in text
    assert text.all("script") == []
    assert "\u202e" not in text


def test_steps_past_two_hundred_come_on_demand(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, [event for n in range(450) for event in shell(f"run {n}", number=n)])
    client = signed_in()
    assert len(page(client, trial).all(".event")) == 200
    headers = {"HX-Request": "true", "HX-Target": "more-steps"}
    rest = parse(client.get(address(trial) + "?from=400", headers=headers))
    assert len([each for each in rest.links if each.startswith("Command ")]) == 50
    assert rest.all("main") == []


def test_neighbours_are_linked(signed_in, run):
    first, second = make_trial(run), make_trial(run)
    client = signed_in()
    assert [each.address for each in page(client, first).all("a[rel=next]")] == [address(second)]
    assert [each.address for each in page(client, second).all("a[rel=prev]")] == [address(first)]


def test_the_strip_rings_this_trial(signed_in, run):
    trials = [make_trial(run) for _ in range(3)]
    marks = page(signed_in(), trials[1]).fact("Last 20 trials").all("i")
    assert ["here" in each.classes for each in marks] == [False, True, False]


def test_it_shows_notes_of_scripts(signed_in, run):
    trial = make_trial(run, detail={"scripts": [{"command": "sh after.sh", "message": "Exit code 3"}]})
    assert "Exit code 3" in page(signed_in(), trial)


def test_it_shows_metrics_and_warnings_of_evaluator_scripts(signed_in, run):
    detail = {
        "metrics": {"coverage": 0.75, "files": ["a.py"]},
        "warnings": ["The score 3 is outside 0 to 1; 1 was used."],
    }
    trial = make_trial(run, scores=[score("scripts", "quality", 1.0, message="Fine.", detail=detail)])
    scripts = page(signed_in(), trial).region("Scripts")
    assert all(text in scripts for text in ("coverage", "0.75", '["a.py"]', "The score 3 is outside 0 to 1"))


@pytest.mark.spec("agentv", "A trace from the provider reaches evaluators and results")
def test_it_shows_the_summary_of_the_trace(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, [Event("tool_call", name="search"), Event("error", text="no")])
    trace = page(signed_in(), trial).region("Trace")
    assert (trace.fact("events").text, trace.fact("errors").text, trace.fact("search").text) == (
        "2",
        "1",
        "1 call",
    )


@pytest.mark.spec("llm-tool-test", "One reason for a failure")
def test_it_says_in_one_line_why_a_trial_failed(signed_in, run):
    scores = [
        score("gates", "file_exists", 0.0, False, message="out.txt does not exist."),
        score("gates", "command_succeeds", 1.0, True),
        score("judge", "judge", 0.53, False, message="Judge score 0.53, needs 0.70."),
    ]
    shown = page(signed_in(), make_trial(run, outcome="fail", scores=scores))
    assert "1 of 2 gates failed: file_exists. Judge score 0.53, needs 0.70." in shown.fact("Reason")


def test_the_page_takes_at_most_twelve_queries(signed_in, run, django_assert_max_num_queries):
    trial = make_trial(run)
    make_transcript(trial, shell("ls"))
    make_judging(trial)
    client = signed_in()
    with django_assert_max_num_queries(12):
        page(client, trial)


def test_only_the_first_failed_command_is_expanded(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, [each for n in range(3) for each in shell(f"run {n}", f"out {n}", min(n, 1), n)])
    steps = page(signed_in(), trial).all("li.event")
    assert [bool(each.all("details[open]")) for each in steps] == [False, True, False]
    assert [bool(each.all(".err")) for each in steps] == [False, True, True]


@pytest.mark.parametrize("part", ["commands", "messages"])
def test_an_answer_in_the_last_message_is_shown_once(signed_in, run, part):
    trial = make_trial(run, answer="I exported 14 tasks.")
    last = Event("message", role="assistant", text="I exported 14 tasks.")
    make_transcript(trial, [Event("message", role="assistant", text="I begin."), *shell("ls"), last])
    text = page(signed_in(), trial, f"?part={part}")
    assert text.count("I exported 14 tasks.") == 1
    assert "Messages 2" in text.links


def test_an_unspoken_answer_counts_as_a_message(signed_in, run):
    trial = make_trial(run, answer="Done.")
    make_transcript(trial, [Event("message", role="assistant", text="I begin."), *shell("ls")])
    text = page(signed_in(), trial)
    assert "Answer Done." in text
    assert "Messages 2" in text.links


def test_it_counts_first_tries_among_the_commands(signed_in, run):
    assert page(signed_in(), make_trial(run)).facts["first-try success"] == "2/4"


def test_the_judge_shows_confidence_and_criterion_weights(signed_in, run):
    trial = make_trial(run)
    trial.scores.append({"layer": "judge", "name": "criterion.quick", "value": 0.5, "weight": 3.0})
    trial.save()
    make_judging(trial)
    client = signed_in()
    judge = page(client, trial).region("Judge")
    assert "confidence 0.80" in judge.all("header")[0]
    trial.scenario_version.content["criteria"]["judge"] = {"pass_threshold": 0.7}
    trial.scenario_version.save()
    assert "needs 0.70 · confidence 0.80" in page(client, trial)
    assert judge.count("confidence") == 1
    assert judge.table("Judge").row_names == ["Efficiency 25 %", "Quick 75 %"]


@pytest.mark.parametrize("part", ["commands", "messages"])
def test_text_in_backticks_is_code_and_escaped(signed_in, run, part):
    trial = make_trial(run, answer=f"Wrote `{HOSTILE}`.", outcome="fail")
    trial.scenario_version.content["prompt"] = f"Write `{HOSTILE}`."
    trial.scenario_version.save()
    trial.scores = [score("gates", "file_exists", 0.0, False, message=f"`{HOSTILE}` failed.")]
    trial.save()
    content = {
        "negatives": [f"Ran `{HOSTILE}`."],
        "positives": [f"Read `{HOSTILE}`."],
        "reasoning": f"`{HOSTILE}`",
    }
    make_judging(trial, content=content)
    text = page(signed_in(), trial, f"?part={part}")
    for words in ("Wrote {}.", "Write {}.", "{} failed.", "Ran {}.", "Read {}."):
        assert words.format(SHOWN) in text
    # The failed gate's message is in the head too.
    assert [each.text for each in text.all("code")].count(SHOWN) == 7
    assert text.all("script") == []


def menu(shown):
    """Return the links of the trial's menu in their order."""
    return [(each.address, each.text) for each in shown.all("details.menu a")]


def test_the_menu_of_a_trial_holds_what_can_be_done_with_it(signed_in, run):
    run.baseline = make_run(run.suite_version)
    run.save()
    trial = make_trial(run)
    make_transcript(trial, [], text="Raw.")
    Artifact.objects.create(trial=trial, name="log", sha256="a" * 64, size=1)
    links = menu(page(signed_in(), trial))
    assert [words for _, words in links] == [
        "Rerun this scenario…",
        "Compare run with baseline",
        "Artifacts",
        "Transcript",
    ]
    new, compare, *downloads = [href for href, _ in links]
    assert new.startswith("/p/tools/runs/new/?suite=")
    assert new.endswith("only=export")
    assert compare == f"/p/tools/compare/?runs={run.baseline_id},{run.pk}"
    assert downloads == ["#artifacts", address(trial, "transcript/")]


def test_a_trial_with_which_nothing_else_can_be_done_is_only_compared(signed_in, run):
    text = page(signed_in("viewer"), make_trial(run))
    assert [each.text for each in text.all("details.menu > summary")] == ["Compare with…"]


@pytest.mark.parametrize(
    ("messages", "answer", "first"),
    [
        (("I begin.", "Could not.", "Done: 1 of 2."), "Could not.\nDone: 1 of 2.\n", "Could not."),
        (("I begin.", "Done."), " Done.", "Done."),
    ],
)
def test_an_answer_in_the_last_messages_is_shown_once(signed_in, run, messages, answer, first):
    trial = make_trial(run, answer=answer)
    make_transcript(
        trial, [*shell("ls"), *(Event("message", role="assistant", text=text) for text in messages)]
    )
    text = page(signed_in(), trial)
    assert "Answer" not in text.headings
    assert f"Answer: {first}" in [each.text for each in text.all("li.message")]
    assert text.count(messages[-1]) == text.count("Answer: ") == 1


@pytest.mark.parametrize("answer", ["Done", "begin. Done.", "I begin. ls Done."])
def test_an_answer_not_in_the_messages_is_shown_separately(signed_in, run, answer):
    trial = make_trial(run, answer=answer)
    messages = [Event("message", role="assistant", text=text) for text in ("I begin.", "Done.")]
    make_transcript(trial, [messages[0], *shell("ls"), messages[1]])
    assert f"Answer {answer}" in page(signed_in(), trial)


def test_the_overall_verdict_shows_only_without_assertions(signed_in, run):
    verdict = score("assertions", "verdict", 0.0, False, message="found x")
    single = score("assertions", "responseNotContains", 0.0, False, message="found x.")
    client = signed_in()
    both = page(client, make_trial(run, outcome="fail", scores=[verdict, single]))
    assert both.region("Gates").count("found x") == 1
    assert "0 of 1 passed" in both
    assert "found x" in page(client, make_trial(run, outcome="fail", scores=[verdict]))


def test_an_informational_judge_is_not_called_left_out(signed_in, run):
    trial = make_trial(run, scores=[])
    make_judging(trial)
    (judge,) = page(signed_in(), trial).region("Judge").all("header")
    assert "informational" in judge
    assert "not run" not in judge


def test_commands_from_transcript_text_name_their_source(signed_in, run):
    client = signed_in()
    assert "Source" not in page(client, make_trial(run)).facts
    trial = make_trial(run)
    trial.detail["interaction"]["source"] = "transcript"
    trial.save()
    assert page(client, trial).facts["Source"] == "transcript text, estimated"


def test_ends_of_an_agents_own_session_file_are_marked(signed_in, run):
    trial = make_trial(run)
    trial.detail["own_account"] = True
    trial.save()
    assert page(signed_in(), trial).facts["Source"] == "the agent's own session file"
