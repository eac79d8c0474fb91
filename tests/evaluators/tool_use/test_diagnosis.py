from __future__ import annotations

import pytest

from evaluators.model import Command, Event, Transcript
from evaluators.tool_use.diagnosis import Thresholds, diagnose, error_messages, threshold_sentence
from evaluators.tool_use.exposure import quoted_events
from evaluators.tool_use.interaction import Interaction, Subcommand

pytestmark = pytest.mark.spec("llm-tool-test", "Low errors and low help: clear docs, and the five patterns")


def interaction(**changes: object) -> Interaction:
    return Interaction(**{"available": True, "completed": True, "total_commands": 10, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metrics", "pattern"),
    [
        ({"error_rate": 0.25, "error_count": 3, "help_seeking": 2}, "errors-without-help"),
        ({"error_rate": 0.25, "error_count": 3, "help_seeking": 3}, "errors-despite-help"),
        ({"error_rate": 0.24, "help_seeking": 3}, "help-instead-of-docs"),
        ({"subcommands": (Subcommand("add", calls=6, retries_after_failure=2),)}, "retries-on-a-command"),
        ({"total_commands": 15}, "many-commands"),
        ({}, "clear-docs"),
        ({"error_rate": 0.24, "help_seeking": 2}, "clear-docs"),
        ({"subcommands": (Subcommand("add", calls=3, retries_after_failure=1),)}, "clear-docs"),
        ({"subcommands": (Subcommand("add", calls=20, retries_after_failure=2),)}, "clear-docs"),
    ],
)
def test_metrics_match_a_pattern_by_its_thresholds(metrics: dict[str, object], pattern: str) -> None:
    (finding,) = diagnose(interaction(**metrics))
    assert finding.pattern == pattern
    assert finding.sentence.endswith(".")
    assert all(line.endswith(".") for line in finding.evidence)
    assert finding.evidence


@pytest.mark.parametrize(
    "metrics",
    [
        {"completed": False},
        {"total_commands": 0},
        {"total_commands": 15, "completed": False},
        {"available": False, "error_rate": 1.0},
    ],
)
def test_what_did_not_complete_or_used_no_tool_matches_no_pattern(metrics: dict[str, object]) -> None:
    assert diagnose(interaction(**metrics)) == ()


def test_evidence_names_the_retried_command() -> None:
    (finding,) = diagnose(
        interaction(subcommands=(Subcommand("add", calls=4, retries_after_failure=3), Subcommand("list")))
    )
    assert finding.evidence == ("add: 3 of 4 calls were retries.",)


def test_thresholds_can_be_changed() -> None:
    assert [one.pattern for one in diagnose(interaction(), Thresholds(commands=10))] == ["many-commands"]


def test_text_and_failed_trials_never_show_clear_docs() -> None:
    assert diagnose(interaction(ends="estimated")) == ()
    assert diagnose(interaction(), failed=True) == ()
    assert diagnose(interaction(error_rate=None)) == ()


def test_every_pattern_names_its_own_thresholds():
    limits = Thresholds(error_rate=0.4, help_calls=7, retries=5, retry_share=0.6, commands=21)
    names = ("errors-without-help", "errors-despite-help", "help-instead-of-docs", "retries-on-a-command")
    sentences = [threshold_sentence(name, limits) for name in (*names, "many-commands")]
    assert all("40 %" in each and "≥ 7" in each for each in sentences[:3])
    assert "at least 5" in sentences[3]
    assert "60 %" in sentences[3]
    assert "at least 21" in sentences[4]
    assert threshold_sentence("unknown") == ""


@pytest.mark.parametrize(
    ("quoted", "words"), [((), "guessed"), ((4,), "guessed"), ((4, 6), "Commands of the guidance failed")]
)
def test_what_the_guidance_quotes_was_not_guessed(quoted: tuple[int, ...], words: str) -> None:
    failed = (
        Command("yard return --km 12", "return", 2, failed=True, event=4, n=0),
        Command("yard rent --km 12", "rent", 2, failed=True, event=6, n=1),
    )
    metrics = {"error_rate": 1.0, "error_count": 2, "total_commands": 2, "commands": failed}
    (finding,) = diagnose(
        interaction(**metrics), quoted=quoted_events({"quotes": [{"event": n} for n in quoted]})
    )
    assert (finding.pattern, words in finding.sentence) == ("errors-without-help", True)


def test_a_tool_that_the_shell_did_not_find_blames_no_docs() -> None:
    gone = Command("ship deploy", "deploy", 127, failed=True, n=0)
    wrong = Command("ship list --all", "list", 2, failed=True, n=1)
    metrics = {"error_rate": 1.0, "error_count": 2, "total_commands": 2, "commands": (gone, wrong)}
    (finding,) = diagnose(interaction(**metrics))
    assert finding.pattern == "tool-not-found"
    assert finding.evidence == ("1 of 2 commands ended with exit code 127: ship deploy",)


def test_a_missing_tool_does_not_count_as_an_error_of_the_docs() -> None:
    gone = Command("ship deploy", "deploy", 127, failed=True, n=0)
    wrong = [Command("ship list --all", "list", 2, failed=True, n=n) for n in (1, 2)]
    metrics = {"error_rate": 0.3, "error_count": 3, "total_commands": 10, "commands": (gone, *wrong)}
    assert [each.pattern for each in diagnose(interaction(**metrics))] == ["tool-not-found"]
    metrics |= {"total_commands": 8, "error_rate": 3 / 8}
    assert [each.pattern for each in diagnose(interaction(**metrics))] == [
        "tool-not-found",
        "errors-without-help",
    ]


MISSING = "python3: can't open file '/workspace/ship.py': [Errno 2] No such file or directory"


@pytest.mark.parametrize(
    ("line", "message", "pattern"),
    [
        ("python3 ship.py deploy", MISSING, "tool-not-found"),
        ("ship deploy ship.yaml", "ship.yaml: No such file or directory", "errors-without-help"),
        ("python3 ship.py deploy", "unknown option --to", "errors-without-help"),
    ],
    ids=["script", "argument", "other"],
)
def test_a_missing_script_blames_no_docs_and_is_quoted(line: str, message: str, pattern: str) -> None:
    event = Event("tool_call", "1", "bash", line)
    failed = Event("tool_result", "1", output=message, exit_code=2)
    command = Command(line, "deploy", 2, failed=True, event=0, n=1)
    metrics = interaction(
        error_rate=1.0, error_count=1, total_commands=1, commands=(command,), source="events"
    )
    messages = error_messages(Transcript(events=(event, failed)), metrics)
    (finding,) = diagnose(metrics, messages=messages)
    assert finding.pattern == pattern
    assert f"`{line}`: {message}" in finding.evidence
