"""Likely causes by the interaction metrics (llm-tool-test evaluation, Diagnostic Patterns)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from evaluators.interaction import Interaction

ERRING = ("errors-without-help", "errors-despite-help")
"""Patterns of failing commands."""
RETRIES = "retries-on-a-command"


class Thresholds(Struct, frozen=True):
    """From where a metric counts as high: evalhub's defaults, because the specification has none."""

    error_rate: float = 0.25
    help_calls: int = 3
    retries: int = 2
    """Retries of one subcommand …"""
    retry_share: float = 0.3
    """… and their share of its calls."""
    commands: int = 15


class Diagnosis(Struct, frozen=True):
    """A matching pattern."""

    pattern: str
    """A stable id."""
    sentence: str
    evidence: tuple[str, ...]


def diagnose(metrics: Interaction, thresholds: Thresholds = Thresholds()) -> tuple[Diagnosis, ...]:  # noqa: B008 immutable
    """Return the patterns that match the metrics; none without commands."""
    if not metrics.available:
        return ()
    if not_found := _not_found(metrics):
        # The docs can't be judged by calls that never reached the tool.
        return (not_found,)
    return (
        *_errors_and_help(metrics, thresholds),
        *_retries(metrics, thresholds),
        *_many_commands(metrics, thresholds),
    )


NOT_FOUND = "tool-not-found"
_SHELL_CODES = (126, 127)
"""A shell's exit codes for a program that it can't execute or find (POSIX, Shell Command Language, 2.8.2)."""


def _not_found(metrics: Interaction) -> Diagnosis | None:
    """Return that the shell did not find the tool, if that is at least half of the failures."""
    missing = [each for each in metrics.commands if each.exit_code in _SHELL_CODES]
    if not missing or 2 * len(missing) < metrics.error_count:
        return None
    sentence = (
        "The shell did not find the tool, so this says nothing about the docs. Install it on the worker, or fix the"
        " scenario's workspace."
    )
    code = missing[0].exit_code
    evidence = (
        f"{len(missing)} of {metrics.total_commands} commands ended with exit code {code}: {missing[0].line}"
    )
    return Diagnosis(NOT_FOUND, sentence, (evidence,))


def threshold_sentence(pattern: str, limit: Thresholds = Thresholds()) -> str:  # noqa: B008 immutable
    """Return the thresholds of a pattern in a sentence, empty for an unknown pattern."""
    both = f"Thresholds: error rate ≥ {_percent(limit.error_rate)}, help calls ≥ {limit.help_calls}."
    sentences = {
        "errors-without-help": f"{both} Only the error rate was exceeded.",
        "errors-despite-help": f"{both} Both were exceeded.",
        "help-instead-of-docs": f"{both} Only the help calls were exceeded.",
        RETRIES: f"Shown when at least {limit.retries} calls and {_percent(limit.retry_share)} of calls are retries.",
        NOT_FOUND: "Shown when at least half of the failures have exit code 126 or 127.",
        "many-commands": f"Shown when a completed trial ran at least {limit.commands} commands.",
    }
    return sentences.get(pattern, "")


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _errors_and_help(metrics: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    erring = metrics.error_rate >= limit.error_rate
    seeking = metrics.help_seeking >= limit.help_calls
    evidence = (
        f"{metrics.error_count} of {metrics.total_commands} commands failed (threshold {_percent(limit.error_rate)}).",
        f"{metrics.help_seeking} help calls (threshold {limit.help_calls}).",
    )
    if erring and not seeking:
        sentence = "The agent guessed the syntax; the docs may contain a wrong example."
        yield Diagnosis("errors-without-help", sentence, evidence)
    elif erring:
        sentence = "The tool's help was not enough: it may lack examples or describe arguments unclearly."
        yield Diagnosis("errors-despite-help", sentence, evidence)
    elif seeking:
        sentence = "The help works, but the docs say too little up front. Add examples to the guidance."
        yield Diagnosis("help-instead-of-docs", sentence, evidence)


def _retries(metrics: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    evidence = tuple(
        f"{sub.name}: {sub.retries_after_failure} of {sub.calls} calls were retries."
        for sub in metrics.subcommands
        if sub.retries_after_failure >= limit.retries
        and sub.retries_after_failure >= limit.retry_share * sub.calls
    )
    if evidence:
        sentence = "These error messages don't help the agent recover."
        yield Diagnosis(RETRIES, sentence, evidence)


def _many_commands(metrics: Interaction, limit: Thresholds) -> Iterator[Diagnosis]:
    if metrics.completed and metrics.total_commands >= limit.commands:
        sentence = "The docs describe commands but no workflow. Add a section on common workflows."
        yield Diagnosis(
            "many-commands", sentence, (f"{metrics.total_commands} commands (threshold {limit.commands}).",)
        )
