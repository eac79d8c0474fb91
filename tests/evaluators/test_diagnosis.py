from __future__ import annotations

import pytest

from evaluators.diagnosis import Thresholds, cut_offs, diagnose
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
    assert finding.evidence == ("3 of 4 `add` calls were retries.",)


def test_the_thresholds_can_be_changed() -> None:
    assert [one.pattern for one in diagnose(told(), Thresholds(commands=10))] == ["many-commands"]


def test_the_cut_offs_of_every_pattern_are_those_it_was_found_by():
    limits = Thresholds(error_rate=0.4, help_calls=7, retries=5, retry_share=0.6, commands=21)
    names = ("errors-without-help", "errors-despite-help", "help-instead-of-docs", "retries-on-a-command")
    said = [cut_offs(name, limits) for name in (*names, "many-commands")]
    assert all("≥ 40 %" in each and "≥ 7" in each for each in said[:3])
    assert ("at least 5" in said[3], "60 %" in said[3], "at least 21" in said[4]) == (True, True, True)
    assert cut_offs("unknown") == ""
