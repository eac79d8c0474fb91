"""One entry of a targets file: its kind, its options and its problems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from evaluators.model import Json
from runs.labels import normalize_labels
from runs.targets.providers.options import Options, snake_case, spellings_given
from runs.targets.providers.registry import ALIASES, OPTIONS
from scenarios.formats.parsed import Location, PositionedDocument, Problem
from scenarios.formats.secrets import is_credential

VARIABLE_REFERENCE = r"^\s*\$\{\{\s*([A-Za-z0-9_]+)\s*\}\}\s*$"
_REFERENCE = re.compile(VARIABLE_REFERENCE)
NESTED_IN = ("settings", "config")
"""Keys under which fields may stand, too."""
OF_ENTRY = frozenset(("name", "label", "id", "provider"))
"""Fields of every entry; AgentV after 2.7 names a target by `label`, else `id`."""


@dataclass(frozen=True)
class TargetDefinition:
    """One entry of a targets file, checked but not resolved."""

    name: str
    kind: str
    fields: Mapping[str, Json]
    """Values by option name, references unresolved."""
    entry: Mapping[str, Json]
    """The entry as written, for storage."""
    judge_target: str = ""
    workers: int | None = None
    labels: tuple[str, ...] = ()
    """Each once, sorted."""
    line: int = 1
    lines: tuple[tuple[str, int], ...] = ()
    """The line of each field."""
    lints: tuple[Problem, ...] = ()

    @property
    def options(self) -> type[Options]:
        """The model of this kind's options."""
        return OPTIONS[self.kind]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its variables, sorted."""
        return tuple(sorted({name for _, text in _texts(self.fields) if (name := find_reference(text))}))


def find_reference(value: Json) -> str:
    """Return the variable that a value refers to; empty for a literal."""
    match = _REFERENCE.match(value) if isinstance(value, str) else None
    return match[1] if match else ""


class TargetEntry:
    """Reads one entry of a document."""

    def __init__(self, document: PositionedDocument, at: Location, entry: Json) -> None:
        self.document = document
        self.at = at
        self.written: dict[str, Json] = entry if isinstance(entry, dict) else {}
        inner = {key: self.written[key] for key in NESTED_IN if isinstance(self.written.get(key), dict)}
        self.nested: dict[str, Json] = {k: v for fields in inner.values() for k, v in fields.items()}
        """Fields under `settings`, as older targets files have them (AgentV evaluation, Codex CLI provider), or `config`."""
        self.entry = self.nested | {k: v for k, v in self.written.items() if not (self.nested and k in inner)}
        self.given = spellings_given(self.entry)
        self.name = self._word("name") or self._word("label") or self._word("id")
        written = self._word("provider").lower()
        self.kind = ALIASES.get(written, written)
        self.options = OPTIONS.get(self.kind)
        self.origin = self._origins()

    def definition(self) -> TargetDefinition:
        """The entry as a definition; valid only if `problems` has no errors."""
        workers = self.fields().get("workers")
        return TargetDefinition(
            name=self.name,
            kind=self.kind,
            fields=self.fields(),
            entry=self.written,
            judge_target=str(self.fields().get("judge_target") or ""),
            workers=None if workers is None or find_reference(workers) else int(workers),
            labels=tuple(normalize_labels(self.fields().get("labels") or ())),
            line=self.document.positions.line(self.at),
            lines=tuple(
                (name, self.document.positions.line(self._place(key))) for name, key in self.origin.items()
            ),
            lints=tuple(self._ignored_fields()),
        )

    def fields(self) -> dict[str, Json]:
        """Values by option name, for any spelling of the field; null counts as absent."""
        return {field: self.entry[key] for field, key in self.origin.items()}

    def problems(self) -> tuple[Problem, ...]:
        """The problems of the entry; a field read for two options is reported once."""
        return tuple(dict.fromkeys(self._problems()))

    def _problems(self) -> Iterator[Problem]:
        if not self.name:
            yield self._problem("name", "The target has no name.", "Add `name`.", "targets/no-name")
        if self.options is None:
            yield self._unknown_provider()
            return
        yield from self._ignored_fields()
        yield from self._literal_secrets()
        options = self.options or Options
        for location, text in _texts(self.fields()):
            if location[0] not in options.opaque_fields and "${{" in text and not find_reference(text):
                yield self._problem_at(
                    location,
                    "A variable reference must be the entire value; here it is part of one.",
                    "Put the entire value in the variable.",
                    "targets/partial-reference",
                )
        if find_reference(self.fields().get("labels")):
            what = (
                "Labels can't come from a variable: evalhub chooses the worker before a worker resolves it."
            )
            yield self._problem_at(
                ("labels",), what, "Write the labels here, such as [gpu, macos].", "targets/invalid-field"
            )
        yield from self._invalid_fields(self.options)

    def _word(self, field: str) -> str:
        value = self.entry.get(self.given.get(field, field))
        return value.strip() if isinstance(value, str) else ""

    def _origins(self) -> dict[str, str]:
        """The field that each option is read from: the first spelling with a value."""
        spellings = self.options.spellings() if self.options else {}
        origins: dict[str, str] = {}
        for field, names in spellings.items():
            written = (self.given[name] for name in names if name in self.given)
            present = [key for key in written if self.entry[key] is not None]
            if present:
                origins[field] = present[0]
        return origins

    def _unknown_provider(self) -> Problem:
        written = self._word("provider")
        what = f"There is no provider called '{written}'." if written else "The target names no provider."
        close = get_close_matches(written.lower(), [*OPTIONS, *ALIASES], 1)
        fix = f"Did you mean '{close[0]}'?" if close else f"Use one of {', '.join(OPTIONS)}."
        return self._problem("provider", what, fix, "targets/unknown-provider")

    def _ignored_fields(self) -> Iterator[Problem]:
        """Yield the fields that have no effect: errors where the kind refuses them, else lints."""
        if self.options is not None:
            yield from self._unknown_fields(self.options)
            for field in sorted(self.options.unused_fields & self.origin.keys()):
                key = self.origin[field]
                what = f"A {self.kind} target does not use '{key}'."
                lint = not self.options.refuses_unknown
                yield self._problem(key, what, "Remove it.", "targets/unused-field", lint=lint)

    def _unknown_fields(self, options: type[Options]) -> Iterator[Problem]:
        known = {name for names in options.spellings().values() for name in names} | OF_ENTRY
        known |= {"runtime"} if self._word("runtime") == "host" else set()
        for written, key in self.given.items():
            if written in known:
                continue
            close = get_close_matches(written, known, 1)
            fix = f"Did you mean '{close[0]}'?" if close else "Remove it."
            what = f"A {self.kind} target has no field '{key}'."
            lint = not options.refuses_unknown
            yield self._problem(key, what, fix, "targets/unknown-field", lint=lint)

    def _literal_secrets(self) -> Iterator[Problem]:
        options = self.options or Options
        for location, text in _texts(self.fields()):
            field, last = str(location[0]), str(location[-1])
            if field in options.opaque_fields or find_reference(text):
                continue
            named = last if field in ("env", "headers") else ""
            if field in options.secret_fields or is_credential(named, text):
                variable = re.sub(r"\W+", "_", snake_case(last)).strip("_").upper() or "NAME"
                yield self._problem_at(
                    location,
                    "This field contains a credential, and secrets are never stored.",
                    f"Set it as a variable on the worker and write ${{{{ {variable} }}}} here.",
                    "targets/literal-secret",
                )

    def _invalid_fields(self, options: type[Options]) -> Iterator[Problem]:
        literal = {field: value for field, value in self.fields().items() if not find_reference(value)}
        try:
            options.model_validate(literal)
        except ValidationError as invalid:
            for error in invalid.errors():
                field = str(error["loc"][0]) if error["loc"] else ""
                if error["type"] == "missing" and field in self.origin and len(error["loc"]) == 1:
                    continue
                yield self._invalid(field, error)

    def _invalid(self, field: str, error: Mapping[str, Any]) -> Problem:
        if error["type"] == "missing" and len(error["loc"]) == 1:
            what = f"A {self.kind} target needs the field '{field}'."
            return self._problem(field, what, "Add it.", "targets/missing-field")
        what = f"This is not valid here: {validation_message(error)}."
        return self._problem_at(tuple(error["loc"]), what, "Correct the value.", "targets/invalid-field")

    def _problem_at(self, location: Location, what: str, fix: str, id: str) -> Problem:
        """Return a problem at a location that begins with an option's name."""
        first = self.origin.get(str(location[0]), str(location[0])) if location else ""
        at = (*self._place(first), *location[1:]) if first else self.at
        return self.document.problem(at, what, fix=fix, id=id)

    def _problem(self, key: str, what: str, fix: str, id: str, *, lint: bool = False) -> Problem:
        return self.document.problem(self._place(key), what, fix=fix, id=id, lint=lint)

    def _place(self, key: str) -> Location:
        """Return where a field is written: in the entry, else under its `settings`."""
        under = ("settings",) if key in self.nested and key not in self.written else ()
        return (*self.at, *under, key)


def _texts(value: Json, at: Location = ()) -> Iterator[tuple[Location, str]]:
    """Yield every text in a value with its location."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*at, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _texts(item, (*at, index))


def validation_message(error: Mapping[str, Any]) -> str:
    """Return pydantic's message as part of a sentence."""
    return str(error["msg"]).removeprefix("Value error, ").rstrip(".")
