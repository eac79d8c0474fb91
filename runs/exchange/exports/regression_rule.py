"""Decide what a run's exit code says: regressed, or nothing measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluators.statistics.measure_change import ChangeVerdict
from runs.exchange.exports.suite_result import suite_run
from runs.models import Run

VERDICT, PASS_FAIL = "verdict", "pass-fail"
RULES = (VERDICT, PASS_FAIL)


def rule_for(format: str, chosen: str | None) -> str:
    """Return the rule of a suite's format: the contract's own for tool-forge's eval files, else the verdict."""
    return chosen or (PASS_FAIL if format == "tool_forge" else VERDICT)


def has_regressed_as_printed(run: Run, document: Mapping[str, Any], chosen: str | None = None) -> bool:
    """Return whether a run regressed, of tool-forge's eval files by the REGRESSIONS that its contract prints.

    The contract counts cases by passed and failed alone, also where a time limit or a gate changed.
    """
    if run.suite.format == "tool_forge" and rule_for(run.suite.format, chosen) == PASS_FAIL:
        return bool(suite_run(run).comparison.regressions)
    return has_regressed(document, chosen)


def has_regressed(run: Mapping[str, Any], chosen: str | None = None) -> bool:
    """Return whether a run's document holds a regression by the chosen rule, else by its format's: exit code 3.

    Every command decides it here. A run with something in the way of a verdict holds none.
    """
    if run["verdict_reason"]:
        return False
    if rule_for(run["format"], chosen) == PASS_FAIL:
        return bool(run["regressions"])
    return bool(run["verdict"] == ChangeVerdict.REGRESSED)


def why_not_measured(run: Mapping[str, Any]) -> str:
    """Return why a closed run's document measured nothing, in a sentence; empty if it measured something."""
    if run["verdict_reason"]:
        return str(run["no_verdict"])
    if run["passed"] or run["failed"]:
        return ""
    if run["error"]:
        return f"Run {run['id']} measured nothing because it did not start: {run['error']}"
    return f"Run {run['id']} measured nothing: none of its trials passed or failed."


def why_no_baseline(run: Mapping[str, Any], chosen: str | None = None) -> str:
    """Return why a run's document can't be compared with a baseline, in a sentence; empty if it was."""
    where = f"{run['suite']} on {run['target']}"
    if run["baseline"] is None:
        return (
            f"Run {run['id']} has no baseline, and --require-baseline asks for one. Give one with --baseline, or keep the "
            f"results of an earlier run of {where}."
        )
    if rule_for(run["format"], chosen) == VERDICT and not run["verdict"] and not run["verdict_reason"]:
        return (
            f"Run {run['id']} has no verdict: no scenario has results in both it and its baseline, run {run['baseline']}. "
            f"Choose a baseline of {where}."
        )
    return ""
