"""List the export formats of a run, and decide what its exit code says: regressed, or nothing measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evaluators.grading.suite_result import suite_result
from evaluators.statistics.measure_change import ChangeVerdict
from runs.exchange.exports.document import run_document
from runs.exchange.exports.llm_tool_test import results_archive
from runs.exchange.exports.result_formats import junit_xml, suite_run, write_jsonl
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


@dataclass(frozen=True)
class Export:
    """One format: label, file type and writer."""

    title: str
    media_type: str
    ending: str
    write: Callable[[Run], str | bytes]
    """Bytes for an archive."""

    @property
    def is_archive(self) -> bool:
        return self.media_type == "application/zip"


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


EXPORTS: dict[str, Export] = {
    "json": Export("JSON", "application/json", "json", lambda run: _pretty(run_document(run.pk))),
    "suite-result": Export(
        "Suite result JSON",
        "application/json",
        "suite-result.json",
        lambda run: _pretty(suite_result(suite_run(run))),
    ),
    "jsonl": Export("AgentV JSONL", "application/jsonl", "jsonl", lambda run: "".join(write_jsonl(run))),
    "junit": Export("JUnit", "application/xml", "junit.xml", lambda run: junit_xml([run_document(run.pk)])),
    "llm-tool-test": Export(
        "llm-tool-test folders (zip)", "application/zip", "llm-tool-test.zip", results_archive
    ),
}
"""By their names in the command line and pages. All redact secrets."""


def export_run(run_id: int, name: str) -> bytes:
    """Return a run in a format of `EXPORTS` as a file's content. Raises KeyError for an unknown name."""
    related = ("suite", "suite_version", "target", "guidance", "by", "project")
    content = EXPORTS[name].write(Run.objects.select_related(*related).get(pk=run_id))
    return content if isinstance(content, bytes) else content.encode()
