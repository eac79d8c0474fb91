"""Explain why a trial did not pass, or has no outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.grading.assertions import VERDICT

CANCELLED = "Cancelled before it finished."


def is_verdict(layer: str, name: str) -> bool:
    """Return whether a score is a case's overall verdict, not a single assertion's."""
    return (layer, name) == ("assertions", VERDICT)


def failed_scores(scores: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the scores that failed a trial; for assertions the verdict alone."""
    failed = [score for score in scores if score.get("passed") is False]
    verdicts = [score for score in failed if is_verdict(score["layer"], score["name"])]
    return (
        [score for score in failed if score["layer"] != "assertions" or score in verdicts]
        if verdicts
        else failed
    )


def reasons_of(scores: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why a trial failed, each sentence once: two gates may miss the same file."""
    messages = (score.get("message") or f"{score['name']} failed." for score in failed_scores(scores))
    return list(dict.fromkeys(messages))


def trial_reasons(trial: Mapping[str, Any]) -> list[str]:
    """Return why a trial did not pass: its error, else the messages of failed scores."""
    if trial["outcome"] == "pass":
        return []
    return [trial["error"]] if trial["outcome"] == "error" else reasons_of(trial["scores"])


def fail_reason(scores: Sequence[Mapping[str, Any]]) -> str:
    """Return why a trial failed in one line; empty if no score failed (llm-tool-test evaluation, Outcome).

    Gates are counted and named; every other score gives its message.
    """
    failed = failed_scores(scores)
    gates = [score["name"] for score in failed if score["layer"] == "gates"]
    total = sum(score["layer"] == "gates" and score.get("passed") is not None for score in scores)
    counted = [f"{len(gates)} of {total} gates failed: {', '.join(dict.fromkeys(gates))}."] if gates else []
    return " ".join([*counted, *reasons_of([score for score in failed if score["layer"] != "gates"])])


def error_of_unmeasured(run: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the error that kept a trial from running, if its run measured nothing; else empty.

    A viewer shows skipped tests as green, which would hide that nothing was measured.
    """
    if trial["outcome"] or run["passed"] or run["failed"]:
        return ""
    return str(trial["error"] or run["error"])


def reason_without_outcome(trial: Mapping[str, Any]) -> str:
    """Return why a trial has no outcome."""
    return str(trial["error"]) or (CANCELLED if trial["state"] == "cancelled" else f"It is {trial['state']}.")
