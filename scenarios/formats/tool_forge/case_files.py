"""Read one eval file of tool-forge: an envelope, a plain list or a perturbation file."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from evaluators.grading.assertions.expect import Expect
from evaluators.model import Json
from evaluators.statistics.staleness import HASH_DIGITS, is_placeholder
from scenarios.formats.parsed import (
    CaseReading,
    Location,
    ParsedSuite,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    describe_kind,
    find_repeated,
    validate,
)
from scenarios.formats.text_files import read_json
from scenarios.formats.tool_forge import GROUPS, NAME, SEED_PLACES, tier_in_name
from scenarios.formats.tool_forge.case_models import CaseContext, Envelope, PerturbationFile
from scenarios.formats.tool_forge.case_reader import read_case
from scenarios.formats.upload import UploadedFiles
from scenarios.spec import ScenarioSpec

_PREFIXES = {"gs-": "golden", "ls-": "labeled", "rg-": "regression", "sp-": "perturbation"}


@dataclass
class _Cases:
    """The cases of a file, each with its location and implied assertions."""

    metadata: dict[str, Json] | None = None
    items: list[tuple[Location, Json, Expect | None]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The valid ids."""
        values = [value for _, value, _ in self.items if isinstance(value, dict)]
        return [value["id"] for value in values if isinstance(value.get("id"), str)]


@dataclass(frozen=True)
class _Seed:
    """The manifest of an eval file, or an empty value."""

    file: str = ""
    value: Json = None
    problems: tuple[Problem, ...] = ()


def read_case_file(
    document: PositionedDocument, upload: UploadedFiles, name: str
) -> tuple[ParsedSuite, list[Problem]]:
    """Read one eval file as the suite `name`; return it with all problems and lints."""
    cases = _cases_of(document)
    seed = _find_seed(upload, document.file)
    tier = _tier_of(document.file, cases.metadata, cases.ids)
    readings = [
        read_case(value, CaseContext(document, at, tier, seed.value is not None, upload.strict, implied))
        for at, value, implied in cases.items
    ]
    problems = [*cases.problems, *seed.problems, *(one for read in readings for one in read.problems)]
    problems += _repeated_ids(document, cases, readings)
    specs = tuple(reading.spec for reading in readings if reading.spec is not None)
    suite = ParsedSuite(
        name=name,
        format=NAME,
        scenarios=specs,
        lints=tuple(sorted(problem for problem in problems if problem.lint)),
        settings={
            "metadata": cases.metadata,
            "tier": tier,
            "tool": _tool_of(document.file, cases.metadata, specs),
            "eval_file_hash": sha256(upload.files[document.file]).hexdigest()[:HASH_DIGITS],
            "seed": seed.value,
            "seed_manifest": seed.file,
        },
    )
    return suite, problems


def _tier_of(path: str, metadata: Mapping[str, Json] | None, ids: Sequence[str]) -> str:
    """Return the tier: the metadata's, else the file name's, else by the ids' prefixes, else `labeled`."""
    tier = (metadata or {}).get("tier")
    if isinstance(tier, str) and tier and not is_placeholder(tier):
        return tier
    by_id = Counter(_PREFIXES[id[:3]] for id in ids if id[:3] in _PREFIXES)
    return tier_in_name(path) or (by_id.most_common(1)[0][0] if by_id else "labeled")


def _tool_of(path: str, metadata: Mapping[str, Json] | None, specs: Sequence[ScenarioSpec]) -> str:
    """Return the tool: from the metadata, else from the file's name, else the most expected one."""
    tool = (metadata or {}).get("toolName")
    if isinstance(tool, str) and tool and not is_placeholder(tool):
        return tool
    if tier_in_name(path):
        return posixpath.basename(path).split(".")[0].replace("-", "_")
    called = Counter(
        name for spec in specs if spec.criteria.expect for name in spec.criteria.expect.tools_called or ()
    )
    return called.most_common(1)[0][0] if called else ""


def _find_seed(upload: UploadedFiles, eval_file: str) -> _Seed:
    """Return the nearest manifest, in the eval file's folder or one above."""
    folder = posixpath.dirname(eval_file)
    while True:
        for place in SEED_PLACES:
            path = posixpath.join(folder, place)
            if path in upload.files:
                return _read_seed(path, upload.files[path])
        if not folder:
            return _Seed()
        folder = posixpath.dirname(folder)


def _read_seed(path: str, content: bytes) -> _Seed:
    try:
        return _Seed(path, read_json(content, path).value)
    except ScenarioFileError as error:
        return _Seed(path, problems=error.problems)


def _cases_of(document: PositionedDocument) -> _Cases:
    value = document.value
    if isinstance(value, list):
        return _listed_cases(document, None, value, ())
    if isinstance(value, dict) and any(group in value for group in GROUPS):
        return _perturbations(document, value)
    if not isinstance(value, dict):
        what = f"An eval file must be an object or a list of cases, not {describe_kind(value)}."
        fix = 'Write {"metadata": null, "cases": []}, or the list of cases alone.'
        return _Cases(problems=[document.problem((), what, fix=fix, id="format/wrong-type")])
    envelope, problems = validate(Envelope, value, document)
    if envelope is None:
        return _Cases(problems=problems)
    cases = _listed_cases(document, envelope.metadata, envelope.cases, ("cases",))
    cases.problems += [*problems, *_placeholders(document, envelope.metadata)]
    return cases


def _listed_cases(
    document: PositionedDocument, metadata: dict[str, Json] | None, cases: list[Json], at: Location
) -> _Cases:
    reading = _Cases(metadata, [((*at, index), case, None) for index, case in enumerate(cases)])
    if not cases:
        what = "The file has no cases."
        fix = "Add a case or remove the file."
        reading.problems.append(document.problem(at, what, fix=fix, id="format/no-cases", lint=True))
    return reading


def _placeholders(document: PositionedDocument, metadata: dict[str, Json] | None) -> list[Problem]:
    return [
        document.problem(
            ("metadata", key),
            f"{value} is an unfilled placeholder, so it is not compared with the registry.",
            fix="Write the value or remove the key.",
            id="format/placeholder",
            lint=True,
        )
        for key, value in (metadata or {}).items()
        if is_placeholder(value)
    ]


def _perturbations(document: PositionedDocument, value: dict[str, Json]) -> _Cases:
    perturbation_file, problems = validate(PerturbationFile, value, document)
    if perturbation_file is None:
        return _Cases(problems=problems)
    cases = _Cases(
        perturbation_file.metadata or {"toolName": perturbation_file.expectedTool}, problems=problems
    )
    tool = (perturbation_file.expectedTool,)
    for group, items, implied in (
        (GROUPS[0], perturbation_file.shouldRouteIdentically, Expect(tools_called=tool)),
        (GROUPS[1], perturbation_file.shouldRouteDifferently, Expect(tools_not_called=tool)),
    ):
        _add_group(document, cases, group, items, implied)
    return cases


def _add_group(document: PositionedDocument, cases: _Cases, group: str, items: Json, implied: Expect) -> None:
    at: Location = (group, "cases") if isinstance(items, dict) else (group,)
    listed = items.get("cases") if isinstance(items, dict) else items
    if listed is None:
        return
    if not isinstance(listed, list):
        what = f"The cases must be a list, not {describe_kind(listed)}."
        cases.problems.append(
            document.problem(at, what, fix='Write {"cases": [...]}.', id="format/wrong-type")
        )
        return
    cases.items += [((*at, index), case, implied) for index, case in enumerate(listed)]


def _repeated_ids(
    document: PositionedDocument, cases: _Cases, readings: list[CaseReading]
) -> Iterator[Problem]:
    read = zip(cases.items, readings, strict=True)
    places = ((reading.spec.key, at) for (at, _, _), reading in read if reading.spec)
    for id, at, earlier in find_repeated(places):
        what = f"Duplicate id '{id}', first in line {document.positions.line(earlier)}."
        fix = "Give each case of a file a unique id."
        yield document.problem((*at, "id"), what, fix=fix, id="format/duplicate-scenario")
