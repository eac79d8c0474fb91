"""The likely cause that the interaction metrics point at (llm-tool-test evaluation, Diagnostic Patterns)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from evaluators.interaction import Interaction

ERRING = ("errors-without-help", "errors-despite-help")
"""Patterns of commands that fail."""
RETRIES = "retries-on-a-command"


class Thresholds(Struct, frozen=True):
    """What counts as high. The specification gives none: these are evalhub's defaults."""

    error_rate: float = 0.25
    help_calls: int = 3
    retries: int = 2
    """Commands of one subcommand that follow its failure …"""
    retry_share: float = 0.3
    """… and their share of its calls."""
    commands: int = 15


class Finding(Struct, frozen=True):
    """A pattern that holds."""

    pattern: str
    """A stable id."""
    sentence: str
    evidence: tuple[str, ...]


def diagnose(told: Interaction, thresholds: Thresholds = Thresholds()) -> tuple[Finding, ...]:  # noqa: B008 immutable
    """Return the patterns that hold for these metrics; none where there were no commands."""
    if not told.available:
        return ()
    return (
        *_errors_and_help(told, thresholds),
        *_retries(told, thresholds),
        *_many_commands(told, thresholds),
    )


def cut_offs(pattern: str, limit: Thresholds = Thresholds()) -> str:  # noqa: B008 immutable
    """Return from where on a pattern is one, in a sentence; empty for a pattern that does not exist."""
    both = f"Thresholds: error rate ≥ {limit.error_rate * 100:.0f} %, help calls ≥ {limit.help_calls}."
    said = {
        "errors-without-help": f"{both} Only the error rate was exceeded.",
        "errors-despite-help": f"{both} Both were exceeded.",
        "help-instead-of-docs": f"{both} Only the help calls were exceeded.",
        RETRIES: f"Shown when at least {limit.retries} calls and {limit.retry_share * 100:.0f} % of calls are retries.",
        "many-commands": f"Shown for completed trials with at least {limit.commands} commands.",
    }
    return said.get(pattern, "")


def _errors_and_help(told: Interaction, limit: Thresholds) -> Iterator[Finding]:
    erring = told.error_rate >= limit.error_rate
    seeking = told.help_seeking >= limit.help_calls
    evidence = (
        f"{told.error_count} of {told.total_commands} commands failed (threshold {limit.error_rate * 100:.0f} %).",
        f"{told.help_seeking} help calls (threshold {limit.help_calls}).",
    )
    if erring and not seeking:
        sentence = "The agent guessed the syntax; the docs may contain a wrong example."
        yield Finding("errors-without-help", sentence, evidence)
    elif erring:
        sentence = "The tool's help falls short: examples are missing or arguments are unclear."
        yield Finding("errors-despite-help", sentence, evidence)
    elif seeking:
        sentence = "The help works, but the docs say too little up front. Add examples to the guidance."
        yield Finding("help-instead-of-docs", sentence, evidence)


def _retries(told: Interaction, limit: Thresholds) -> Iterator[Finding]:
    evidence = tuple(
        f"{sub.retries_after_failure} of {sub.calls} `{sub.name}` calls were retries."
        for sub in told.subcommands
        if sub.retries_after_failure >= limit.retries
        and sub.retries_after_failure >= limit.retry_share * sub.calls
    )
    if evidence:
        sentence = "These error messages don't help the agent recover."
        yield Finding(RETRIES, sentence, evidence)


def _many_commands(told: Interaction, limit: Thresholds) -> Iterator[Finding]:
    if told.completed and told.total_commands >= limit.commands:
        sentence = "The docs describe commands but not the workflow. Add a section on common workflows."
        yield Finding(
            "many-commands", sentence, (f"{told.total_commands} commands (threshold {limit.commands}).",)
        )
