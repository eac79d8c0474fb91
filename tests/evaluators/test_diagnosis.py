from __future__ import annotations

import pytest

from evaluators.diagnosis import Thresholds, diagnose
from evaluators.interaction import Interaction, Subcommand


def told(**changes: object) -> Interaction:
    return Interaction(**{"available": True, "completed": True, "total_commands": 10, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metrics", "pattern"),
    [
        ({"error_rate": 0.25, "error_count": 3, "help_seeking": 2}, "errors-without-help"),
        ({"error_rate": 0.25, "error_count": 3, "help_seeking": 3}, "errors-despite-help"),
        ({"error_rate": 0.24, "help_seeking": 3}, "help-instead-of-docs"),
        ({"subcommands": (Subcommand("add", calls=6, retries_after_failure=2),)}, "retries-on-a-command"),
        ({"total_commands": 15}, "many-commands"),
    ],
)
def test_it_names_the_pattern(metrics: dict[str, object], pattern: str) -> None:
    (finding,) = diagnose(told(**metrics))
    assert finding.pattern == pattern
    assert finding.sentence.endswith(".")
    assert all(line.endswith(".") for line in finding.evidence)
    assert finding.evidence


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"error_rate": 0.24, "help_seeking": 2},
        {"subcommands": (Subcommand("add", calls=3, retries_after_failure=1),)},
        {"subcommands": (Subcommand("add", calls=20, retries_after_failure=2),)},
        {"total_commands": 15, "completed": False},
        {"available": False, "error_rate": 1.0},
    ],
)
def test_it_says_nothing_below_the_thresholds(metrics: dict[str, object]) -> None:
    assert diagnose(told(**metrics)) == ()


def test_it_names_the_command_that_is_retried() -> None:
    (finding,) = diagnose(
        told(subcommands=(Subcommand("add", calls=4, retries_after_failure=3), Subcommand("list")))
    )
    assert finding.evidence == ("add: 3 of 4 calls follow a failure of it.",)


def test_the_thresholds_can_be_changed() -> None:
    assert [one.pattern for one in diagnose(told(), Thresholds(commands=10))] == ["many-commands"]
