"""Decide whether a run regressed, for exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluators.measure_change import ChangeVerdict
from runs.models import Run
from runs.reports.suite_result import suite_run

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
    """Return whether a run's document holds a regression by the chosen rule, else by its format's.

    A run without a verdict because of its errors holds none.
    """
    if run["verdict_reason"]:
        return False
    if rule_for(run["format"], chosen) == PASS_FAIL:
        return bool(run["regressions"])
    return bool(run["verdict"] == ChangeVerdict.REGRESSED)
