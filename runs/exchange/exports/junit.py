"""Export a run as JUnit XML for continuous integration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from runs.exchange.exports.document import first_trials
from runs.results.failure_reasons import (
    error_of_unmeasured,
    failed_scores,
    reason_without_outcome,
    trial_reasons,
)

# XML 1.0 forbids most control characters, even escaped.
_FORBIDDEN = dict.fromkeys(
    [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)]
)


Files = Mapping[int, Mapping[str, str]]
"""Files of scenarios, by run and key."""


def junit_xml(documents: Iterable[Mapping[str, Any]], files: Files | None = None) -> str:
    """Return run documents as one JUnit document: a test suite per run, a test case per trial.

    Each suite also fits Maven's schema (surefire-test-report.xsd), which requires `time` and `type`; `file` and
    `timestamp` are what pytest and other programs add. Times are in seconds.
    """
    root = Element("testsuites")
    for document in documents:
        run = document["run"]
        root.append(_suite(run, first_trials(document), (files or {}).get(run.get("id", 0), {})))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(run: Mapping[str, Any], trials: Iterable[Mapping[str, Any]], files: Mapping[str, str]) -> Element:
    cases = [_case(run, trial, files.get(trial["scenario"], "")) for trial in trials]
    tags = [element.tag for case in cases for element in case]
    attributes = {
        "name": _clean(f"{run['suite']} on {run['target']}"),
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
        "skipped": str(tags.count("skipped")),
        "time": _time(run["seconds"]),
    }
    if moment := run.get("started") or run.get("created"):
        attributes["timestamp"] = datetime.fromisoformat(moment).strftime("%Y-%m-%dT%H:%M:%S")
    suite = Element("testsuite", attributes)
    properties = SubElement(suite, "properties")
    for name, value in _properties(run).items():
        SubElement(properties, "property", name=f"evalhub.{name}", value=_clean(value))
    suite.extend(cases)
    return suite


def _properties(run: Mapping[str, Any]) -> dict[str, str]:
    """Return by what an import knows the run again."""
    known = {
        "run": run.get("uuid"),
        "suite": run["suite"],
        "target": run["target"],
        "model": run.get("model"),
        "state": run.get("state"),
    }
    return {name: str(value) for name, value in known.items() if value}


def _case(run: Mapping[str, Any], trial: Mapping[str, Any], file: str) -> Element:
    name = trial["scenario"] + (f" #{trial['index'] + 1}" if trial["index"] else "")
    attributes = {
        "classname": _clean(run["suite"]),
        "name": _clean(name),
        "time": _time(trial["seconds"]),
        **({"file": _clean(file)} if file else {}),
    }
    case = Element("testcase", attributes)
    if trial["outcome"] == "fail":
        failed = failed_scores(trial["scores"])
        _add(case, "failure", "\n".join(trial_reasons(trial)), failed[0]["name"] if failed else "fail")
    elif trial["outcome"] == "error":
        _add(case, "error", "\n".join(trial_reasons(trial)), trial.get("error_kind") or "error")
    elif trial["outcome"] is None:
        if unmeasured := error_of_unmeasured(run, trial):
            _add(case, "error", unmeasured, "not_run")
        else:
            _add(case, "skipped", reason_without_outcome(trial))
    return case


def _add(case: Element, tag: str, text: str, type: str = "") -> None:
    """Add the result of a case; Maven's schema has no type of skipped ones."""
    text = _clean(text)
    attributes = {"message": text[:300], **({"type": _clean(type)} if type else {})}
    SubElement(case, tag, attributes).text = text


def _time(seconds: float | None) -> str:
    """Return a time in seconds; 0 for an unknown one, because the schema requires it."""
    return f"{seconds or 0.0:.3f}"


def _clean(text: str) -> str:
    return text.translate(_FORBIDDEN)
