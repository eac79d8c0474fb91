"""Fill in variables, and cross prompts with tests, as files after AgentV 4.42 have them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evaluators.model import Json, Text
from scenarios.formats.agentv.file_versions import EvalFileContext
from scenarios.formats.agentv.imported_cases import PREFIX
from scenarios.formats.agentv.messages import file_text
from scenarios.formats.parsed import Location, Mirror, Problem, ScenarioFileError, describe_kind, validate
from scenarios.formats.yaml_text import read_yaml

_REFERENCE = r"\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}"
VARIABLE_ALONE = rf"^\s*{_REFERENCE}\s*$"
"""Matches a text that is nothing but a variable and becomes its value."""
_VARIABLE = re.compile(rf"(?<!\$){_REFERENCE}")
_ENVIRONMENT = re.compile(r"\$\{\{\s*\w+\s*\}\}|\{\{\s*env\.\w+\s*(?:\|[^{}]*)?\}\}")
_OF_JUDGES = frozenset(
    ("output", "input", "expected_output", "criteria", "metadata", "rubrics", "tool_calls", "file_changes")
)
"""Placeholders that a judge's prompt may keep."""
VARIABLE_LEVELS = 2
"""How deep values of variables may contain others; AgentV fills in prompts twice."""
TEMPLATES = frozenset(("prompt", "command", "script"))
"""Keys of assertions that aren't filled in: judges fill in prompts, shells read commands."""
_PROGRAMS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".py")
_SOURCES = ("file", "messages", "prompt", "raw")


class PromptFile(Mirror):
    """An entry of `prompts` with a name: its text is in one of the other keys."""

    unrunnable: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("function_file", "function", "command"), "Write the prompt as text or messages."
    )

    id: Text | None = None
    label: Text | None = None
    file: Text | None = None
    """The path of a file with the text or messages."""
    messages: list[Any] | None = None
    prompt: Any = None
    raw: Any = None


@dataclass(frozen=True)
class PromptTemplate:
    """One entry of `prompts`."""

    label: str
    value: Json
    """A text, or messages."""
    at: Location


@dataclass
class Filling:
    """Fills variables into values and collects problems."""

    context: EvalFileContext
    variables: Mapping[str, Json]
    is_strict: bool = True
    """Whether a variable without a value is a problem; else it stays as written."""
    problems: list[Problem] = field(default_factory=list)

    def fill(
        self,
        value: Json,
        at: Location,
        *,
        allowed: frozenset[str] = frozenset(),
        inside: tuple[str, ...] = (),
    ) -> Json:
        """Return a value with its variables filled in; a text that is nothing but a variable becomes its value.

        `inside` are the variables whose values lead to this one; its place is where the first is used.
        """
        if isinstance(value, list | dict):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            filled = {
                key: item
                if key in TEMPLATES
                else self.fill(item, at if inside else (*at, key), allowed=allowed, inside=inside)
                for key, item in items
            }
            return filled if isinstance(value, dict) else list(filled.values())
        return self._fill_text(value, at, allowed, inside) if isinstance(value, str) else value

    def _fill_text(self, text: str, at: Location, allowed: frozenset[str], inside: tuple[str, ...]) -> Json:
        if whole := _VARIABLE.fullmatch(text.strip()):
            return self._find(whole[1], text, at, allowed, inside)
        return _VARIABLE.sub(
            lambda match: _as_text(self._find(match[1], match[0], at, allowed, inside)), text
        )

    def _find(
        self, name: str, written: str, at: Location, allowed: frozenset[str], inside: tuple[str, ...]
    ) -> Json:
        value: Json = self.variables
        bare = name.removeprefix("vars.")
        for part in bare.split("."):
            if not isinstance(value, Mapping) or part not in value:
                if self.is_strict and name not in allowed:
                    self._add_unknown(name, at, inside)
                return written
            value = value[part]
        # Versions without a matrix fill in once.
        if not self.is_strict:
            return value
        if bare in inside or len(inside) > VARIABLE_LEVELS:
            self._add_nested(inside[0], at)
            return written
        return self.fill(value, at, allowed=allowed, inside=(*inside, bare))

    def _add_unknown(self, name: str, at: Location, inside: tuple[str, ...]) -> None:
        within = f", in the value of '{inside[-1]}'," if inside else ""
        what = f"The variable '{name}'{within} has no value."
        fix = "Add it to 'vars:' of the test, or of 'default_test:'."
        self._add(at, what, fix, "format/unknown-variable")

    def _add_nested(self, name: str, at: Location) -> None:
        what = f"The variable '{name}' contains itself, or variables are nested too deep."
        fix = f"Nest variables at most {VARIABLE_LEVELS} deep."
        self._add(at, what, fix, "format/nested-variable")

    def _add(self, at: Location, what: str, fix: str, id: str) -> None:
        problem = self.context.document.problem(at, what, fix=fix, id=id)
        if problem not in self.problems:
            self.problems.append(problem)


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def environment_problems(value: Json, context: EvalFileContext, at: Location) -> Iterator[Problem]:
    """Return a problem for each text with a variable of the environment, which evalhub doesn't resolve in eval files."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from environment_problems(item, context, (*at, key))
    elif isinstance(value, str) and (variable := _ENVIRONMENT.search(value)):
        what = (
            f"evalhub can't run '{variable[0]}': variables of the environment are not resolved in eval files."
        )
        yield context.document.problem(at, what, fix="Write the value.", id="format/environment-variable")


def read_prompts(
    values: Sequence[Json], context: EvalFileContext, problems: list[Problem]
) -> list[PromptTemplate]:
    """Return the entries of `prompts` that can be read; a list of nothing but messages is one prompt."""
    if values and all(map(_is_message, values)):
        return [PromptTemplate("1", list(values), ("prompts",))]
    prompts = []
    for index, value in enumerate(values):
        at: Location = ("prompts", index)
        label = str(index + 1)
        if isinstance(value, dict) and not _is_message(value):
            key = _source(value, context, at, problems)
            if not key:
                continue
            label = str(value.get("label") or value.get("id") or label)
            at, value = (*at, key), value[key]
            if key == "file":
                value = PREFIX + value.removeprefix(PREFIX)
        if isinstance(value, str) and value.startswith(PREFIX):
            value = _prompt_of_file(value.removeprefix(PREFIX), context, at, problems)
            if value is None:
                continue
        if not isinstance(value, str | list | dict) or not value:
            what = f"A prompt must be text or a list of messages, not {describe_kind(value)}."
            fix = "Write the text, or messages with 'role:' and 'content:'."
            problems.append(context.document.problem(at, what, fix=fix, id="format/wrong-type"))
            continue
        prompts.append(PromptTemplate(label, value, at))
    return prompts


def _is_message(value: Json) -> bool:
    return isinstance(value, dict) and ("role" in value or "content" in value)


def _source(
    value: Mapping[str, Json], context: EvalFileContext, at: Location, problems: list[Problem]
) -> str:
    """Return the key with the text of a prompt that has a name; empty with a problem if it can't be read."""
    fields = {key: item for key, item in value.items() if item is not None}
    entry, more = validate(PromptFile, fields, context.document, at)
    problems += more
    if entry is None:
        return ""
    used = [key for key in _SOURCES if key in fields]
    for key in used[1:]:
        what = f"'{used[0]}' and '{key}' are both the text of the prompt."
        fix = "Keep one of them."
        problems.append(context.document.problem((*at, key), what, fix=fix, id="format/repeated-key"))
    if not used and (entry.id or "").startswith(PREFIX):
        return "id"
    if not used:
        what, fix = "The prompt has no text.", "Add 'prompt:', 'messages:' or 'file:'."
        problems.append(context.document.problem(at, what, fix=fix, id="format/missing-field"))
    return used[0] if used else ""


def _prompt_of_file(name: str, context: EvalFileContext, at: Location, problems: list[Problem]) -> Json:
    ending = posixpath.splitext(name.split(":")[0])[1].lower()
    if ending in _PROGRAMS:
        what = f"evalhub can't run '{name}': a prompt must not be a program."
        fix = "Write the prompt as text or messages."
        problems.append(context.document.problem(at, what, fix=fix, id="format/unreadable-include"))
        return None
    path = context.find_file(name)
    if path is None:
        problems.append(context.missing(at, name))
        return None
    context.answers.add(path)
    if ending not in (".yaml", ".yml", ".json"):
        text, more = file_text(context, path, at)
        problems += more
        return text
    try:
        return read_yaml(context.upload.files[path], path).value
    except ScenarioFileError as error:
        problems += error.problems
        return None


def cross_with_prompts(
    case: Mapping[str, Json], prompts: Sequence[PromptTemplate]
) -> Iterator[tuple[dict[str, Json], PromptTemplate | None]]:
    """Return a case once for each prompt, with that as its input and in its id if there are several."""
    if not prompts:
        yield dict(case), None
    for prompt in prompts:
        filled = {**case, "input_messages": prompt.value}
        if len(prompts) > 1 and isinstance(filled.get("id"), str):
            filled["id"] = f"{filled['id']} [{prompt.label}]"
        yield filled, prompt


def fill_case(
    case: Mapping[str, Json],
    filling: Filling,
    at: Location,
    spelled: Mapping[str, str],
    prompt_at: Location | None,
) -> dict[str, Json]:
    """Return a case with its variables filled in; assertions only where prompts are apart from tests."""
    filled = dict(case)
    for key in ("input_messages", "input_files", "expected_outcome", "expected_messages"):
        if key in case:
            own_prompt = key == "input_messages" and prompt_at is not None
            place = prompt_at if own_prompt and prompt_at is not None else (*at, spelled.get(key, key))
            filled[key] = filling.fill(case[key], place)
    if filling.context.version.has_matrix and "evaluators" in case:
        place = (*at, spelled.get("evaluators", "evaluators"))
        filled["evaluators"] = filling.fill(case["evaluators"], place, allowed=_OF_JUDGES)
    return filled
