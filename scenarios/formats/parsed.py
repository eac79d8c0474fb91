"""Parsed suites, the problems of files with line and fix, and the validation that finds them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from heapq import nsmallest
from types import NoneType
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails

from evaluators.model import FROM_FILE, Json
from scenarios.spec import ScenarioSpec

Location = tuple[str | int, ...]
"""Keys and indexes from the root of a document to a value."""


@dataclass(frozen=True)
class Positions:
    """Lines by location; merged and aliased values have the line of their nearest known parent."""

    lines: Mapping[Location, int] = field(default_factory=dict)

    def line(self, location: Location) -> int:
        """Return the line of a value or of its nearest known parent, from 1."""
        for end in range(len(location), -1, -1):
            if (line := self.lines.get(location[:end])) is not None:
                return line
        return 1


@dataclass(frozen=True)
class PositionedDocument:
    """One decoded file with the lines of its values."""

    file: str
    value: Json
    positions: Positions

    def problem(self, at: Location, what: str, *, fix: str, id: str, lint: bool = False) -> Problem:
        """Return a problem at a location of this document."""
        return Problem(
            file=self.file,
            line=self.positions.line(at),
            where=line_of(at),
            what=what,
            fix=fix,
            id=id,
            lint=lint,
        )


def line_of(location: Location) -> str:
    """Return a location as text: `evaluation.gates[2].type`."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


@dataclass(frozen=True, order=True)
class Problem:
    """One problem: where it is, what is wrong and how to fix it.

    `id` is stable, for programs (`format/unknown-gate`). A `lint` is shown and stored, but does not reject the file.
    """

    file: str
    line: int
    where: str
    """Path within the document, such as `evaluation.gates[2].type`."""
    what: str
    """A sentence."""
    fix: str = ""
    """A sentence that says how to fix it."""
    id: str = ""
    lint: bool = False

    def __str__(self) -> str:
        sentences = f"{self.what} {self.fix}".strip()
        where = f" {self.where}:" if self.where else ""
        return f"{self.file}:{self.line}:{where} {sentences} [{self.id}]"

    def as_json(self) -> dict[str, object]:
        """The problem as JSON of the REST interface."""
        return asdict(self)


MOST_PROBLEMS = 1_000


class ScenarioFileError(Exception):
    """The files are not valid scenarios. Contains every problem up to `MOST_PROBLEMS`, not only the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Hints are the first to be left out.
        first = nsmallest(MOST_PROBLEMS, problems, key=lambda problem: (problem.lint, problem))
        self.problems = tuple(sorted(first))
        super().__init__("\n".join(str(problem) for problem in self.problems))


T = TypeVar("T")


@dataclass(frozen=True)
class FixtureFile:
    """One regular file of a fixture; `path` is relative to the workspace, with forward slashes."""

    path: str
    content: bytes
    executable: bool = False


Fixture = tuple[FixtureFile, ...]
"""The initial files of a workspace, sorted by path."""


@dataclass
class CaseReading:
    """One translated case. Without a `spec`, the problems say why."""

    spec: ScenarioSpec | None = None
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class ParsedSuite:
    """One suite of an upload."""

    name: str
    format: str
    scenarios: tuple[ScenarioSpec, ...]
    fixtures: Mapping[str, Fixture] = field(default_factory=dict)
    """Fixtures by the name in `ScenarioSpec.fixture`, including guidance files."""
    guidance: tuple[str, ...] = ()
    """Patterns of files that are guidance regardless of their name, such as those of a skill."""
    lints: tuple[Problem, ...] = ()
    targets_text: str = ""
    """The bundle's targets file, unchanged, for `runs.targets.definitions`."""
    targets_file: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Suite-wide settings, such as the profiles of llm-tool-test-config.toml."""
    solutions: Mapping[str, str] = field(default_factory=dict)
    """Reference solutions as shell scripts, by scenario key; not part of the content."""
    left_out: tuple[str, ...] = ()
    """What of the skills' folders no agent gets: folders with the number of their files, and files."""


def find_repeated(entries: Iterable[tuple[Hashable, T]]) -> Iterator[tuple[str, T, T]]:
    """Yield the key and value of each entry whose key another one has before it, and the value of that."""
    first: dict[Hashable, tuple[Hashable, T]] = {}
    for entry in entries:
        earlier = first.setdefault(entry[0], entry)
        if earlier is not entry:
            yield str(entry[0]), entry[1], earlier[1]


M = TypeVar("M", bound=BaseModel)
_Skipped = SkipJsonSchema[Any]
READS_AS = "x-reads-as"
"""Marks in a JSON Schema what another reader takes; `json_schemas` replaces it by a reference."""


def reads_as(name: str) -> WithJsonSchema:
    """Return the annotation of a value that another reader takes, by the name of its part of the format's schema."""
    return WithJsonSchema({READS_AS: name})


class Mirror(BaseModel):
    """Base of models that mirror a file: no conversion, no unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    decisive: ClassVar[Mapping[str, str]] = {}
    """Keys of other versions that decide the verdict, so that they can't be ignored; what to write instead."""
    unrunnable: ClassVar[Mapping[str, str]] = {}
    """Keys that need what evalhub doesn't do, so that they can't be ignored; what to do instead."""


def validate(
    model: type[M],
    value: Json,
    document: PositionedDocument,
    at: Location = (),
    *,
    value_ids: Mapping[str, str] | None = None,
    spelled: Mapping[str, str] | None = None,
) -> tuple[M | None, list[Problem]]:
    """Return the model and its lints, or None and every problem.

    `at` is the location of `value` in the document. Unknown keys, among them those of fields that no schema
    shows, are lints and are ignored, unless the model names them as decisive. `value_ids` maps
    fields with their own validator to problem ids, `spelled` maps fields to their spelling in the file.
    """
    texts = _ErrorTexts(document, at, value_ids or {}, spelled or {})
    instance, errors = _attempt(model, value)
    refused = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    internal = model.model_fields.keys() - set(shown_fields(model))
    written: list[Location] = [(key,) for key in value if key in internal] if isinstance(value, dict) else []
    unknown = list(dict.fromkeys([*refused, *written]))
    keys = [texts.unknown_key(model, loc) for loc in unknown]
    if unknown:
        instance, errors = _attempt(model, _without(value, unknown))
    problems = keys + [texts.problem(error) for error in errors]
    return None if any(not key.lint for key in keys) else instance, problems


def without_wrong_parts(model: type[M], value: Json, stand_ins: Mapping[Location, Json]) -> M | None:
    """Return the model of the valid parts of a value, to find further problems.

    Invalid parts are removed, or replaced by the value in `stand_ins` at their location.
    """
    _, errors = _attempt(model, value)
    value = copy.deepcopy(value)
    for error in errors:
        _cut(value, error["loc"], stand_ins)
    instance, _ = _attempt(model, value)
    return instance


def shown_fields(model: Any) -> list[str]:
    """Return the names of a model's fields in files: those of its schema."""
    fields: Mapping[str, FieldInfo] = getattr(model, "model_fields", {})
    return [
        field.alias or name for name, field in fields.items() if get_args(_Skipped)[-1] not in field.metadata
    ]


def _cut(value: Json, loc: Location, stand_ins: Mapping[Location, Json]) -> None:
    for depth, part in enumerate(loc, start=1):
        inner = value.get(part) if isinstance(value, dict) else None
        if loc[:depth] in stand_ins:
            value[part] = stand_ins[loc[:depth]]
            return
        if depth == len(loc) or not isinstance(inner, dict):
            value.pop(part, None)
            return
        value = inner


def did_you_mean(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """Return `Did you mean '…'?`, or nothing if no known name is similar (`likeness` from 0 to 1)."""
    close = get_close_matches(name.lower(), list(known), n=1, cutoff=likeness)
    return f"Did you mean '{close[0]}'?" if close else ""


def describe_kind(value: Json) -> str:
    """Return the kind of a decoded value in plain texts."""
    for type_, name in _KINDS:
        if isinstance(value, type_):
            return name
    return "something else"


_KINDS: tuple[tuple[type, str], ...] = (
    (NoneType, "nothing"),
    (bool, "true or false"),
    (str, "text"),
    (int, "a number"),
    (float, "a number"),
    (dict, "a mapping"),
    (list, "a list"),
)
_EXPECTED = {
    "string_type": ("text", "Write it as text, in quotes where it looks like a number."),
    "int_type": ("a whole number", "Write a whole number without quotes."),
    "float_type": ("a number", "Write a number without quotes."),
    "bool_type": ("true or false", "Write true or false without quotes."),
    "list_type": ("a list", "Write one item per line, each after a dash."),
    "tuple_type": ("a list", "Write one item per line, each after a dash."),
    "dict_type": ("a mapping", "Write keys and values, each pair on its own line."),
    "model_attributes_type": ("a mapping", "Write keys and values, each pair on its own line."),
    "model_type": ("a mapping", "Write keys and values, each pair on its own line."),
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def _attempt(model: type[M], value: Json) -> tuple[M | None, list[ErrorDetails]]:
    try:
        return model.model_validate(value, strict=True, context=FROM_FILE, by_alias=True, by_name=False), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A list whose items are wrong isn't too short, too.
        inside = {each["loc"][:depth] for each in errors for depth in range(len(each["loc"]))}
        return None, [each for each in errors if each["type"] != "too_short" or each["loc"] not in inside]


def _without(value: Json, locations: list[Location]) -> Json:
    value = copy.deepcopy(value)
    for location in locations:
        parent = value
        for part in location[:-1]:
            parent = parent[part]
        # Aliases share one object, so the key may be gone already.
        parent.pop(location[-1], None)
    return value


def _model_at(model: type[BaseModel], loc: Location) -> Any:
    """Return the model of the mapping at a location."""
    annotation: Any = model
    for part in loc:
        annotation = _plain(annotation)
        if isinstance(part, str) and hasattr(annotation, "model_fields"):
            fields = annotation.model_fields.items()
            annotation = next(field for name, field in fields if part in (name, field.alias)).annotation
        else:
            annotation = [each for each in get_args(annotation) if each is not ...][-1]
    return _plain(annotation)


def _plain(annotation: Any) -> Any:
    """Return X of `X | None`, without what annotates it."""
    options = get_args(annotation)
    inner = options[0] if NoneType in options else annotation
    return inner.__origin__ if hasattr(inner, "__metadata__") else inner


@dataclass(frozen=True)
class _ErrorTexts:
    """Turns pydantic's errors into problems."""

    document: PositionedDocument
    at: Location
    value_ids: Mapping[str, str]
    spelled: Mapping[str, str]

    def unknown_key(self, model: type[BaseModel], loc: Location) -> Problem:
        inner = _model_at(model, loc[:-1])
        if instead := getattr(inner, "decisive", {}).get(str(loc[-1])):
            what = f"'{loc[-1]}' decides the verdict in other versions of this format and is not supported."
            return self.document.problem((*self.at, *loc), what, fix=instead, id="format/unsupported-key")
        if instead := getattr(inner, "unrunnable", {}).get(str(loc[-1])):
            what = f"evalhub can't run '{loc[-1]}'."
            return self.document.problem((*self.at, *loc), what, fix=instead, id="format/unsupported-key")
        known = [self.spelled.get(name, name) for name in shown_fields(inner)]
        fix = did_you_mean(str(loc[-1]), known) or "The key is ignored. Remove it."
        what = f"Unknown key '{loc[-1]}'."
        return self.document.problem((*self.at, *loc), what, fix=fix, id="format/unknown-key", lint=True)

    def problem(self, error: ErrorDetails) -> Problem:
        what, fix, id = _sentences(error)
        loc = tuple(self.spelled.get(str(part), part) for part in error["loc"])
        if id == "format/wrong-value" and loc:
            id = self.value_ids.get(str(loc[-1]), id)
        return self.document.problem((*self.at, *loc), what, fix=fix, id=id)


def _sentences(error: ErrorDetails) -> tuple[str, str, str]:
    if error["type"] in _EXPECTED:
        expected, fix = _EXPECTED[error["type"]]
        return (f"This must be {expected}, not {describe_kind(error['input'])}.", fix, "format/wrong-type")
    if error["type"] in _BOUNDS or error["type"] == "finite_number":
        return _out_of_range(error)
    sentences = _OTHERS.get(error["type"], _wrong_value)
    return sentences(error)


def _out_of_range(error: ErrorDetails) -> tuple[str, str, str]:
    name, words = _BOUNDS.get(error["type"], ("", ""))
    bound = f"{words} {error['ctx'][name]:g}" if name else "finite"
    return f"This must be {bound}, not {error['input']}.", f"Write a number {bound}.", "format/out-of-range"


def _missing(error: ErrorDetails) -> tuple[str, str, str]:
    key = error["loc"][-1]
    return f"The key '{key}' is missing.", f"Add '{key}:' with its value.", "format/missing-field"


def _blank(error: ErrorDetails) -> tuple[str, str, str]:
    return "This must not be empty.", "Write a value or remove the key.", "format/empty-value"


def _choice(error: ErrorDetails) -> tuple[str, str, str]:
    expected = error["ctx"]["expected"]
    return f"This must be {expected}.", "Use one of these values.", "format/unknown-value"


def _wrong_value(error: ErrorDetails) -> tuple[str, str, str]:
    reason = str(error.get("ctx", {}).get("error", error["msg"])).rstrip(".") + "."
    has_fix = ". " in reason
    return reason, "" if has_fix else "Fix the value.", "format/wrong-value"


_OTHERS: dict[str, Callable[[ErrorDetails], tuple[str, str, str]]] = {
    "missing": _missing,
    "string_too_short": _blank,
    "too_short": _blank,
    "string_pattern_mismatch": _blank,
    "literal_error": _choice,
}
