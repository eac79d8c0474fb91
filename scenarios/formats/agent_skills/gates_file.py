"""Read `evals/gates.yaml`: what checks a skill's cases without a judge, and which tool they test.

Also finds files of a skill that contain, word for word, what its cases are judged by.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import yaml
from pydantic import Field

from evalhub.lib.numbers import format_count
from evaluators.model import Json
from evaluators.tool_use.tool import Tool
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agent_skills.case_lists import EXPECTED
from scenarios.formats.agent_skills.skill_folders import FILE, GATES
from scenarios.formats.llm_tool_test.config_file import read_gates, target_problems
from scenarios.formats.llm_tool_test.scenario_models import Gates
from scenarios.formats.parsed import (
    Fixture,
    FixtureFile,
    Location,
    Mirror,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    describe_kind,
    did_you_mean,
    reads_as,
    validate,
)
from scenarios.formats.text_files import MAX_BYTES
from scenarios.formats.upload import UploadedFiles, resolve_inside
from scenarios.formats.yaml_text import read_yaml
from scenarios.spec import ScenarioSpec

SHORTEST = 40
"""Characters from which on an assertion or expected output isn't in a file by chance."""


def answers_in_files(files: Sequence[FixtureFile], specs: Sequence[ScenarioSpec]) -> Iterator[Problem]:
    """Yield a lint for each file but SKILL.md with an assertion or expected output of a case, however it is wrapped."""
    answers = {_join(text): (spec.key, what) for spec in specs for what, text in _answers(spec)}
    marks = {answer: _mark(answer) for answer in answers}
    for file in files:
        if posixpath.basename(file.path) == FILE or len(file.content) > MAX_BYTES or b"\0" in file.content:
            continue
        text = decode_text(file.content, "replace")
        joined = _join(text)
        words = {"", *joined.split(" ")}
        found = [
            answer
            for answer in answers
            if marks[answer] in words and any(form in joined for form in _forms(answer, file.path))
        ]
        if found:
            key, what = answers[found[0]]
            more = f", and {format_count(len(found) - 1, 'more text')} like it" if found[1:] else ""
            sentence = (
                f"The file holds the {what} of case '{key}' word for word{more}: "
                "an agent with the skill can read it."
            )
            fix = "Reword it, or move the file into evals/, which no agent gets."
            line = _line_of(text, found[0], file.path)
            yield Problem(file.path, line, "", sentence, fix, "format/answer-in-skill", lint=True)


def _answers(spec: ScenarioSpec) -> Iterator[tuple[str, str]]:
    judge = spec.criteria.judge
    if judge is None:
        return
    texts = [
        ("expected output" if one.id == EXPECTED else "assertion", one.description)
        for one in judge.rubric.criteria
    ]
    yield from (
        (what, text)
        for what, text in [("expected output", judge.rubric.expected), *texts]
        if len(_join(text)) >= SHORTEST
    )


def _join(text: str) -> str:
    return " ".join(text.split())


def _mark(answer: str) -> str:
    """Return the longest word that has spaces around it wherever the text occurs; empty without one."""
    words = (word for word in answer.split(" ")[1:-1] if word.isascii() and word.isalnum())
    return max(words, key=len, default="")


def _forms(answer: str, path: str) -> list[str]:
    """Return a text as a file may have it: in JSON with escapes."""
    if not path.lower().endswith((".json", ".jsonl")):
        return [answer]
    return [answer, json.dumps(answer)[1:-1], json.dumps(answer, ensure_ascii=False)[1:-1]]


def _line_of(text: str, answer: str, path: str) -> int:
    for form in _forms(answer, path):
        if match := re.search(r"\s+".join(map(re.escape, form.split())), text):
            return text.count("\n", 0, match.start()) + 1
    return 1


NAME = GATES


class CaseGates(Mirror):
    """What one case has beside its statements."""

    gates: Gates = Field(default_factory=list)
    """Checks without a judge; all must pass."""
    setup: list[str] = Field(default_factory=list)
    """Commands to run in the workspace before the agent."""
    tags: list[str] = Field(default_factory=list)
    """For selecting cases."""
    timeout_secs: float | None = Field(default=None, gt=0)
    """Time limit of the agent in seconds."""
    max_turns: int | None = Field(default=None, gt=0)
    """The most turns of the agent."""


class GatesModel(CaseGates):
    """The file: for all cases, and by a case's id in `cases`."""

    tool: Annotated[Json, reads_as("tool")] = None
    """The tool under test: its name, or the keys of llm-tool-test's `target`."""
    workspace: str = ""
    """A folder beside this file with the initial files of every workspace."""
    cases: dict[str, CaseGates] = Field(default_factory=dict)
    """What single cases have besides, by id."""


@dataclass
class GatesFile:
    """The gates file beside an eval file; without one, what an empty one says."""

    document: PositionedDocument | None = None
    tool: Tool | None = None
    workspace: Fixture = ()
    """The initial files of every workspace."""
    shared: CaseGates = field(default_factory=CaseGates)
    """What all cases have; its gates and those of `cases` are read."""
    cases: Mapping[str, CaseGates] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def checks_of(self, names: Sequence[str]) -> CaseGates:
        """Return the checks of a case, which is named by any of `names`: those of all cases, then its own."""
        own, shared = (
            next((self.cases[name] for name in names if name in self.cases), CaseGates()),
            self.shared,
        )
        lists = {name: getattr(shared, name) + getattr(own, name) for name in ("gates", "setup", "tags")}
        limits = {name: getattr(own, name) or getattr(shared, name) for name in ("timeout_secs", "max_turns")}
        return shared.model_copy(update={**lists, **limits})

    def unknown_cases(self, known: set[str]) -> Iterator[Problem]:
        """Yield a problem for each case that no eval file has."""
        for name in self.cases:
            if name not in known and self.document:
                what = f"No case is called '{name}'."
                fix = did_you_mean(name, known) or "Write the id of a case in evals.json."
                yield self.document.problem(("cases", name), what, fix=fix, id="format/unknown-case")


def read_gates_file(upload: UploadedFiles, folder: str) -> GatesFile:
    """Read the gates file in the folder of an eval file."""
    path = posixpath.join(folder, NAME)
    if path not in upload.files:
        return GatesFile(tool=_projects_tool(upload))
    try:
        document = read_yaml(upload.files[path], path)
    except ScenarioFileError as error:
        return GatesFile(problems=list(error.problems))
    cases = document.value.get("cases") if isinstance(document.value, dict) else None
    gates_file, problems = validate(
        GatesModel,
        {**document.value, "cases": {str(key): each for key, each in cases.items()}}
        if isinstance(cases, dict)
        else document.value,
        document,
    )
    read = GatesFile(document, problems=problems)
    if gates_file is not None:
        _fill(read, gates_file, document, upload)
    return read


def _fill(
    read: GatesFile, gates_file: GatesModel, document: PositionedDocument, upload: UploadedFiles
) -> None:
    read.tool = _tool(read, gates_file.tool, document, upload)
    binary = read.tool.binary if read.tool else ""
    read.shared = _checks(read, gates_file, document, (), binary)
    read.cases = {
        name: _checks(read, case, document, ("cases", name), binary)
        for name, case in gates_file.cases.items()
    }
    if gates_file.workspace.strip():
        _find_workspace(read, gates_file.workspace, document, upload)


def _checks(
    read: GatesFile, case_gates: CaseGates, document: PositionedDocument, at: Location, binary: str
) -> CaseGates:
    gates, problems = read_gates(case_gates.gates, document, (*at, "gates"), binary=binary)
    read.problems += problems
    return case_gates.model_copy(update={"gates": list(gates)})


def _tool(read: GatesFile, value: Json, document: PositionedDocument, upload: UploadedFiles) -> Tool | None:
    if value is None:
        return _projects_tool(upload)
    if isinstance(value, str) and value.strip():
        return Tool(binary=value.strip())
    if not isinstance(value, dict):
        what = f"The tool must be a name or a mapping, not {describe_kind(value)}."
        fix = "Write 'tool: NAME', or the keys of llm-tool-test's 'target'."
        read.problems.append(document.problem(("tool",), what, fix=fix, id="format/wrong-type"))
        return None
    target, problems = validate(Tool, value, document, ("tool",))
    read.problems += problems
    if target is None:
        return None
    read.problems += target_problems(target, document, ("tool",), upload.variables)
    return target


def _projects_tool(upload: UploadedFiles) -> Tool | None:
    """Return a tool that a run finds by the project's pattern, if there is one."""
    return Tool() if upload.command_pattern.strip() else None


def workspace_folder(upload: UploadedFiles, folder: str) -> str:
    """Return the folder of the workspace that the gates file of a folder names; empty without one."""
    path = posixpath.join(folder, NAME)
    try:
        value = read_yaml(upload.files[path], path).value if path in upload.files else None
    except ScenarioFileError:
        return ""
    name = value.get("workspace") if isinstance(value, dict) else None
    return _folder_beside(folder, name) if isinstance(name, str) else ""


def _folder_beside(folder: str, name: str) -> str:
    """Return the path of a folder that is neither the gates file's nor around it; empty if it is, or leads outside."""
    path = resolve_inside(folder, name.strip().rstrip("/")) or ""
    return "" if path in (".", "") or (folder + "/").startswith(path + "/") else path


def _find_workspace(read: GatesFile, name: str, document: PositionedDocument, upload: UploadedFiles) -> None:
    path = _folder_beside(posixpath.dirname(document.file), name)
    if not path:
        what = f"'{name}' isn't a folder of its own in the upload, so the agent could read its checks."
        fix = f"Name a folder beside {NAME}."
        read.problems.append(document.problem(("workspace",), what, fix=fix, id="format/fixture-outside"))
        return
    read.workspace = upload.below(path)
    if not read.workspace:
        what = f"The upload has no folder '{path}' with files."
        fix = f"Add the folder, or name another one relative to {document.file}."
        read.problems.append(document.problem(("workspace",), what, fix=fix, id="format/missing-fixture"))


def name_tool(files: Mapping[str, bytes], folder: str, tool: str) -> dict[str, bytes]:
    """Return the files with the tool of a folder's evals named in its gates file, which is added if there is none.

    Raises `ScenarioFileError` if the gates file names one already.
    """
    path = posixpath.join(folder, NAME)
    line = yaml.safe_dump({"tool": tool}, allow_unicode=True).encode()
    if path not in files:
        return {**files, path: line}
    document = read_yaml(files[path], path)
    if isinstance(document.value, dict) and document.value.get("tool") is not None:
        what = f"The file names a tool already, and --tool names '{tool}'."
        fix = "Leave out --tool, or remove the key."
        raise ScenarioFileError([document.problem(("tool",), what, fix=fix, id="format/two-tools")])
    start, _, rest = (
        files[path].partition(b"---\n") if files[path].startswith(b"---\n") else (b"", b"", files[path])
    )
    return {**files, path: start + line + rest}
