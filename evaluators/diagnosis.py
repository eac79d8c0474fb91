"""The likely cause that the interaction metrics point at (llm-tool-test evaluation, Diagnostic Patterns)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

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


class Diagnosis(Struct, frozen=True):
    """A pattern that holds."""

    pattern: str
    """A stable id."""
    sentence: str
    evidence: tuple[str, ...]


def diagnose(told: Interaction, thresholds: Thresholds = Thresholds()) -> tuple[Diagnosis, ...]:  # noqa: B008 immutable
    """Return the patterns that hold for these metrics; none where there were no commands."""
    if not told.available:
        return ()
    return (
        *_errors_and_help(told, thresholds),
        *_retries(told, thresholds),
        *_many_commands(told, thresholds),
    )


@lru_cache(maxsize=64)
def cut_offs(pattern: str, limit: Thresholds = Thresholds()) -> str:  # noqa: B008 immutable
    """Return from where on a pattern is one, in a sentence; empty for a pattern that does not exist."""
    errors, helps = f"error rate from {limit.error_rate:.0%}", f"calls for help from {limit.help_calls}"
    said = {
        "errors-without-help": f"High are an {errors} and {helps}: here the first was high alone.",
        "errors-despite-help": f"High are an {errors} and {helps}: here both were.",
        "help-instead-of-docs": f"High are an {errors} and {helps}: here the second was high alone.",
        RETRIES: f"From {limit.retries} calls of a subcommand that follow its failure, and {limit.retry_share:.0%} of its calls.",
        "many-commands": f"From {limit.commands} commands of a trial that completed.",
    }
    return said.get(pattern, "")


def _errors_and_help(told: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    erring = told.error_rate >= limit.error_rate
    seeking = told.help_seeking >= limit.help_calls
    evidence = (
        f"{told.error_count} of {told.total_commands} commands failed (high from {limit.error_rate:.0%}).",
        f"{told.help_seeking} calls for help (high from {limit.help_calls}).",
    )
    if erring and not seeking:
        sentence = "The agent thinks it knows the syntax but does not: the docs may hold wrong examples."
        yield Diagnosis("errors-without-help", sentence, evidence)
    elif erring:
        sentence = "The tool's help is not enough: examples are missing or arguments described unclearly."
        yield Diagnosis("errors-despite-help", sentence, evidence)
    elif seeking:
        sentence = "The help is good but the docs say too little up front: add examples to the guidance."
        yield Diagnosis("help-instead-of-docs", sentence, evidence)


def _retries(told: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    evidence = tuple(
        f"{sub.name}: {sub.retries_after_failure} of {sub.calls} calls follow a failure of it."
        for sub in told.subcommands
        if sub.retries_after_failure >= limit.retries
        and sub.retries_after_failure >= limit.retry_share * sub.calls
    )
    if evidence:
        sentence = "The error messages of these commands do not help the agent to correct itself."
        yield Diagnosis(RETRIES, sentence, evidence)


def _many_commands(told: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    if told.completed and told.total_commands >= limit.commands:
        sentence = "The docs describe the commands but not the workflow: add a section on common workflows."
        yield Diagnosis(
            "many-commands", sentence, (f"{told.total_commands} commands (high from {limit.commands}).",)
        )
