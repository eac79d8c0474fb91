from __future__ import annotations

from evaluators.model import Command
from evaluators.statistics.run_diagnosis import (
    CommandShare,
    DiagnosedTrial,
    DiagnosisThresholds,
    diagnose_run,
)
from evaluators.tool_use.diagnosis import Thresholds
from evaluators.tool_use.interaction import Interaction, Subcommand

FAILING = Interaction(
    available=True,
    total_commands=6,
    error_count=3,
    error_rate=0.5,
    help_seeking=1,
    subcommands=(Subcommand("add", calls=4, errors=3), Subcommand("list", calls=1)),
)
FINE = Interaction(available=True, total_commands=6, subcommands=(Subcommand("add", calls=6),))


def test_a_finding_covers_the_whole_run() -> None:
    trials = [
        DiagnosedTrial(1, "create", FAILING),
        DiagnosedTrial(2, "create", FINE),
        DiagnosedTrial(3, "export", FAILING),
        DiagnosedTrial(4, "export", Interaction()),
    ]
    found = {each.pattern: each for each in diagnose_run(trials, Thresholds())}["errors-without-help"]
    assert (found.trials, found.of_trials) == ((1, 3), 3)
    assert (found.scenarios, found.of_scenarios) == (("create", "export"), 2)
    assert found.commands == [CommandShare("add", 6, 8, 2, 2)]
    assert found.evidence == (
        "6 of 12 commands failed (50 %) in these trials.",
        "1.0 help calls and 6.0 commands per trial.",
    )


def test_findings_of_most_trials_come_first() -> None:
    helped = Interaction(
        available=True, total_commands=6, help_seeking=5, subcommands=(Subcommand("add", 3, helps=3),)
    )
    trials = [DiagnosedTrial(1, "a", FAILING), DiagnosedTrial(2, "a", helped), DiagnosedTrial(3, "a", helped)]
    first = diagnose_run(trials, Thresholds())[0]
    assert (first.pattern, first.commands) == ("help-instead-of-docs", [CommandShare("add", 6, 12, 2, 1)])


def test_changed_thresholds_change_the_findings() -> None:
    strict = diagnose_run(
        [DiagnosedTrial(1, "a", FAILING)], Thresholds(error_rate=0.6, help_calls=9, retries=9)
    )
    assert not [each for each in strict if each.pattern.startswith("errors")]


def test_a_missing_tool_names_the_commands_not_found() -> None:
    gone = tuple(Command("ship add", "add", 127, failed=True, n=n) for n in range(3))
    trial = DiagnosedTrial(1, "a", Interaction(**{**_fields(FAILING), "commands": gone}))  # type: ignore[arg-type]
    (found,) = diagnose_run([trial], Thresholds())
    assert (found.pattern, found.commands, found.verb) == (
        "tool-not-found",
        [CommandShare("add", 3, 4, 1, 1)],
        "were not found",
    )


def test_the_source_of_thresholds_is_a_sentence() -> None:
    assert DiagnosisThresholds().source == "Thresholds from the documented defaults."
    assert DiagnosisThresholds(Thresholds(), 24, ("error_rate",)).source == (
        "Thresholds from the project's settings (error rate), else the upper quartile of 24 earlier runs."
    )


def _fields(metrics: Interaction) -> dict[str, object]:
    return {name: getattr(metrics, name) for name in metrics.__struct_fields__}


def test_a_missing_script_is_counted_and_quoted() -> None:
    message = "python3: can't open file '/workspace/ship.py': No such file or directory"
    gone = tuple(Command("python3 ship.py add", "add", 2, failed=True, n=n) for n in range(3))
    metrics = Interaction(**{**_fields(FAILING), "commands": gone})  # type: ignore[arg-type]
    (found,) = diagnose_run([DiagnosedTrial(1, "a", metrics, dict.fromkeys(range(3), message))], Thresholds())
    assert (found.pattern, found.commands[0].hits) == ("tool-not-found", 3)
    assert f"`python3 ship.py add`: {message}" in found.evidence
