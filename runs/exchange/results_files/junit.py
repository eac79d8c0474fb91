"""JUnit XML as pytest, Maven's surefire, jest-junit, gotestsum, Node and evalhub itself write it.

A case is a scenario and each of its results a trial. A case that was not run isn't a trial. Properties of a suite
of cases may name what ran (`evalhub.suite`, `evalhub.target`, `evalhub.model`); its other properties are dropped,
because surefire writes all of Java's there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

from evalhub.lib.limits import LONGEST_NAME, LONGEST_TEXT
from runs.errors import RequestError
from runs.exchange.results_files.values import (
    ExternalRun,
    ExternalTrial,
    ResultsFile,
    describe_left_out,
    read_time,
    suite_name,
)

RUN, SUITE, TARGET, MODEL, STATE = (
    f"evalhub.{name}" for name in ("run", "suite", "target", "model", "state")
)
"""Properties of a suite that name a run. evalhub's own files have the first, its UUID."""
_INDEX = re.compile(r" #([1-9]\d*)\Z")
"""How evalhub numbers the further trials of a scenario."""
_ROOT = re.compile(r"\A\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<testsuites?\b", re.DOTALL)
"""The beginning of a file: without a document type, which could define entities that grow to a large text."""
_EARLIER = {"flakyFailure": "fail", "flakyError": "error"}
"""Attempts before the one that passed."""
_LATER = {"rerunFailure": "fail", "rerunError": "error"}
"""Attempts after the first that failed."""
_UNNAMED = frozenset(("", "pytest", "pytest tests", "jest tests", "Mocha Tests"))
"""Names that programs give every file."""
_STAMP = re.compile(r"-\d{14}\Z")
"""The time that unittest-xml-reporting appends to the names of suites."""
_NO_CLASS = frozenset(("", "test"))
"""Class names that say nothing; Node gives every case the second one."""
_RESULTS = {"failure": "fail", "error": "error"}
_NOT_RUN = frozenset(("disabled", "notrun", "skipped", "suppressed"))
"""What CTest and GoogleTest say in `status` or `result` of a case that they didn't run."""
_TEARDOWN = "failed on teardown"
"""The beginning of pytest's message where the clean-up of a test broke."""
_NOT_LOADED = "Test suite failed to run"
"""The class that jest-junit gives a file that can't be loaded."""


@dataclass(frozen=True)
class _Case:
    """A test case as it is written, with what is known from around it."""

    node: Element
    parents: tuple[str, ...]
    """The names of the suites around it, from the outermost one."""
    named: Mapping[str, str]
    """The properties of evalhub's of the suites around it."""
    started: datetime | None


def is_junit(text: str) -> bool:
    """Return whether a text begins like JUnit XML."""
    return _ROOT.match(text) is not None


def read(results_file: ResultsFile) -> tuple[ExternalRun, ...]:
    """Return a run of a file or of a folder's files; one for each target that the suites' properties name."""
    files = [(results_file.name, results_file)]
    warnings: list[str] = []
    if results_file.members:
        paths = sorted(path for path in results_file.members if path.endswith(".xml"))
        files = [(path, ResultsFile(path, results_file.members[path])) for path in paths]
        if strange := [path for path, file in files if not is_junit(file.text)]:
            warnings.append(
                describe_left_out("XML files", strange, len(files), "because they aren't JUnit's")
            )
    roots = [_parse(name, file.text) for name, file in files if is_junit(file.text)]
    if not roots:
        return ()
    cases = list(_joined([case for root in roots for case in _cases(root)]))
    if not cases:
        raise RequestError(
            f"{results_file.name}: no test case in it. Choose the report of a run that ran tests."
        )
    groups: dict[tuple[str, ...], list[_Case]] = {}
    for case in cases:
        groups.setdefault(tuple(case.named.get(name, "") for name in (RUN, SUITE, TARGET, MODEL)), []).append(
            case
        )
    first, *others = (_run(results_file.name, roots, own) for own in groups.values())
    return (replace(first, warnings=tuple(warnings)), *others)


def _parse(file: str, text: str) -> Element:
    try:
        return fromstring(text)  # noqa: S314 (no document type comes before the root)
    except ParseError as error:
        raise RequestError(f"{file}: line {error.position[0]}: the XML is broken: {error.msg}.") from error


def _cases(root: Element) -> Iterator[_Case]:
    """Yield the cases of a file in their order, whatever suites are within each other."""
    below: list[tuple[Element, tuple[str, ...], dict[str, str], datetime | None]] = [(root, (), {}, None)]
    while below:
        node, parents, named, started = below.pop()
        if node.tag == "testcase":
            yield _Case(node, parents, named, started)
            continue
        is_suite = node.tag == "testsuite"
        inside = (
            (*parents, node.get("name", "")) if is_suite else parents,
            {
                **named,
                **{name: text for name, text in _properties(node).items() if name.startswith("evalhub.")},
            },
            _moment(node.get("timestamp")) or started,
        )
        children = [each for each in node if each.tag in ("testcase", "testsuite", "testsuites")]
        below += [(each, *inside) for each in reversed(children)]


def _run(file: str, roots: Sequence[Element], cases: Sequence[_Case]) -> ExternalRun:
    named = cases[0].named
    is_own = RUN in named
    trials = [trial for case in cases for trial in _trials(case, is_own=is_own)]
    program, version = _program(roots)
    times = [case.started for case in cases if case.started]
    return ExternalRun(
        suite=named.get(SUITE) or _suite(file, roots, cases),
        format="junit",
        target=named.get(TARGET) or program,
        model=named.get(MODEL, "")[:LONGEST_NAME],
        trials=tuple(trials),
        program_version=version,
        external_id=named.get(RUN, ""),
        started=min(times, default=None),
        cancelled=named.get(STATE) == "cancelled",
        skipped=sum(not _was_run(case.node) for case in cases),
    )


def _suite(file: str, roots: Sequence[Element], cases: Sequence[_Case]) -> str:
    """Return the name of the only suite, else that of the file."""
    around = {case.parents[0] if case.parents else "" for case in cases}
    names = [root.get("name", "") for root in roots] if len(roots) == 1 else []
    names += list(around) if len(around) == 1 else []
    chosen = next((name for name in names if name not in _UNNAMED), "")
    return suite_name(_STAMP.sub("", chosen), PurePosixPath(file).name)


def _program(roots: Sequence[Element]) -> tuple[str, str]:
    """Return which program wrote the file, `junit` if it doesn't show, and the version that it names."""
    root = roots[0]
    first = root if root.tag == "testsuite" else root.find("testsuite")
    names = {root.get("name"), first.get("name") if first is not None else None}
    go = _properties(first).get("go.version", "") if first is not None else ""
    if go:
        return "go test", go
    if any("surefire" in value for value in root.attrib.values()):
        return "surefire", root.get("version", "")
    if names & {"pytest", "pytest tests"}:
        return "pytest", ""
    if "jest tests" in names:
        return "jest", ""
    if any(name and _STAMP.search(name) for name in names):
        return "unittest", ""
    classes = {case.get("classname") for case in root.iter("testcase")}
    return ("node", "") if classes == {"test"} else ("junit", "")


def _trials(case: _Case, *, is_own: bool) -> Iterator[ExternalTrial]:
    node = case.node
    if not _was_run(node):
        return
    key = _key(case, is_own=is_own)
    for child in node:
        if child.tag in _EARLIER:
            yield _trial(key, _EARLIER[child.tag], child)
    result = next((child for child in node if child.tag in _RESULTS), None)
    printed = (node.findtext(name) or "" for name in ("system-out", "system-err"))
    yield replace(
        _trial(key, "pass" if result is None else _RESULTS[result.tag], result, _properties(node)),
        answer="\n".join(text.strip("\n") for text in printed if text.strip())[:LONGEST_TEXT],
        seconds=_seconds(node.get("time"), zero_is_unknown=is_own),
    )
    for child in node:
        if child.tag in _LATER:
            yield _trial(key, _LATER[child.tag], child)


def _was_run(node: Element) -> bool:
    """Return whether a test ran; what failed did, whatever its status says."""
    if node.find("skipped") is not None:
        return False
    said = {node.get(name, "").lower() for name in ("status", "result")}
    return not said & _NOT_RUN or any(child.tag in _RESULTS for child in node)


def _key(case: _Case, *, is_own: bool) -> str:
    """Return a case's name with its class, or with its suites where the class says nothing."""
    name, of = case.node.get("name", ""), case.node.get("classname", "")
    if is_own:
        return _shortened(_INDEX.sub("", name))
    if of in _NO_CLASS:
        within = [each for each in case.parents if each and each not in _UNNAMED]
        return _shortened(" > ".join([*within, name]))
    return _shortened(name if of == name else f"{of}.{name}")


def _shortened(key: str) -> str:
    """Return a name that can be stored; two different ones stay different."""
    key = key or "unnamed"
    return (
        key
        if len(key) <= LONGEST_NAME
        else f"{key[: LONGEST_NAME - 9]}…{sha256(key.encode()).hexdigest()[:8]}"
    )


def _trial(
    key: str, outcome: str, result: Element | None, properties: Mapping[str, str] | None = None
) -> ExternalTrial:
    message = "The test passed." if result is None else _message(result)
    verdict: dict[str, Any] = {
        "layer": "assertions",
        "name": "verdict",
        "value": float(outcome == "pass"),
        "passed": outcome == "pass",
        "message": message,
        "detail": {
            "type": "" if result is None else result.get("type", ""),
            **({"properties": dict(properties)} if properties else {}),
        },
    }
    is_error = outcome == "error"
    return ExternalTrial(
        key=key, outcome=outcome, scores=() if is_error else (verdict,), error=message if is_error else ""
    )


def _message(result: Element) -> str:
    """Return what a result says: its message, then its text unless that begins with it."""
    stated = result.get("message", "").strip()
    text = (result.findtext("stackTrace") or result.text or "").strip()
    if not stated or text.startswith(stated):
        return (text or stated or result.get("type") or "No message.")[:LONGEST_TEXT]
    return f"{stated}\n{text}".strip()[:LONGEST_TEXT]


def _joined(cases: Sequence[_Case]) -> Iterator[_Case]:
    """Yield the cases, with a failure and an error of one execution as one: the failure, or what comes first.

    pytest writes a failed case again for an error of its clean-up, with other cases between them where several
    processes run tests, and jest-junit a failure beside the error of a file that can't be loaded. Any other case with
    the same name is a retry.
    """
    alone: Counter[tuple[object, ...]] = Counter()
    for case in cases:
        name = (case.parents, case.node.get("classname"), case.node.get("name"))
        result = next((child for child in case.node if child.tag in _RESULTS), None)
        if result is not None:
            is_broken_file = case.node.get("classname") == _NOT_LOADED
            is_clean_up = result.tag == "error" and result.get("message", "").startswith(_TEARDOWN)
            if (is_clean_up or is_broken_file) and alone[name]:
                alone[name] -= 1
                continue
            alone[name] += result.tag == "failure" or is_broken_file
        yield case


def _properties(node: Element) -> dict[str, str]:
    listed = node.findall("properties/property")
    return {each.get("name", ""): each.get("value", each.text or "")[:LONGEST_TEXT] for each in listed}


def _seconds(value: str | None, *, zero_is_unknown: bool) -> float | None:
    """Return a time; old versions of surefire write thousands with commas."""
    try:
        seconds = float((value or "").replace(",", ""))
    except ValueError:
        return None
    is_known = 0 <= seconds < float("inf") and not (zero_is_unknown and seconds == 0)
    return seconds if is_known else None


def _moment(value: str | None) -> datetime | None:
    """Return a time, unless it is the 0 of a clock, which jest-junit writes of a file that can't be loaded."""
    moment = read_time(value) if value else None
    return moment if moment and moment.year > 1970 else None
