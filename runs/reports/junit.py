"""Export a run as JUnit XML for continuous integration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from runs.warehouse.failure_reasons import trial_reasons

# XML 1.0 forbids most control characters, even escaped.
_FORBIDDEN = dict.fromkeys(
    [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)]
)


def junit_xml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return run documents as one JUnit document: a test suite per run, a test case per trial."""
    root = Element("testsuites")
    for document in documents:
        root.append(_suite(document["run"], document["trials"]))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(run: Mapping[str, Any], trials: Iterable[Mapping[str, Any]]) -> Element:
    attributes = {
        "name": _clean(f"{run['suite']} on {run['target']}"),
        "tests": str(run["trials"]),
        "failures": str(run["failed"]),
        "errors": str(run["errors"]),
        "skipped": str(run["cancelled"]),
    }
    suite = Element("testsuite", attributes | _time(run["seconds"]))
    for trial in trials:
        suite.append(_case(run, trial))
    return suite


def _case(run: Mapping[str, Any], trial: Mapping[str, Any]) -> Element:
    name = trial["scenario"] + (f" #{trial['index'] + 1}" if trial["index"] else "")
    attributes = {"classname": _clean(run["suite"]), "name": _clean(name)}
    case = Element("testcase", attributes | _time(trial["seconds"]))
    tag = {"fail": "failure", "error": "error", None: "skipped"}.get(trial["outcome"])
    if tag:
        text = _clean("\n".join(trial_reasons(trial)))
        SubElement(case, tag, message=text[:300]).text = text
    return case


def _time(seconds: float | None) -> dict[str, str]:
    """Return the time attribute; omit an unknown time, because readers take 0 as measured."""
    return {} if seconds is None else {"time": f"{seconds:.3f}"}


def _clean(text: str) -> str:
    return text.translate(_FORBIDDEN)
