"""The files that a skill's cases name: where they are looked for, and which ones a workspace gets."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.model import Json
from scenarios.formats.agent_skills.case_lists import find_trigger
from scenarios.formats.agent_skills.gates_file import GatesFile
from scenarios.formats.agent_skills.skill_folders import Skill
from scenarios.formats.agentv.eval_file_context import folders_above
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.positions import Location, PositionedDocument
from scenarios.formats.problems import Problem
from scenarios.formats.upload import UploadedFiles, inside, is_below
from scenarios.formats.validation import kind

_PLUGIN = ".claude-plugin/plugin.json"


@dataclass(frozen=True)
class SkillContext:
    """One eval file with what its cases share."""

    document: PositionedDocument
    upload: UploadedFiles
    skills: tuple[Skill, ...]
    gates: GatesFile
    is_trigger_list: bool = False

    def trigger_of(self, case: dict[str, Json]) -> tuple[str, Json]:
        """Return the key of a case that says which skill must be loaded, and what it says; an empty key without one."""
        return find_trigger(case, by_skill=self.is_trigger_list)

    @property
    def folder(self) -> str:
        """The eval file's folder in the upload."""
        return posixpath.dirname(self.document.file)

    @property
    def places(self) -> list[str]:
        """The folders in which a case's files are looked for."""
        return places_of(self.document.file, [skill.folder for skill in self.skills], self.upload)


def places_of(file: str, skills: Sequence[str], upload: UploadedFiles) -> list[str]:
    """Return the eval file's folder, the skills', that above it, the plug-in's, and the repository's root."""
    folder = posixpath.dirname(file)
    plugins = (each for each in folders_above(folder) if posixpath.join(each, _PLUGIN) in upload.files)
    return list(dict.fromkeys((folder, *skills, posixpath.dirname(folder), *plugins, "")))


def find_path(name: str, value: Json, context: SkillContext) -> str:
    """Return the file or folder of the upload that a text names; empty if it doesn't look like a path of one."""
    if not isinstance(value, str) or not (
        re.search(r"[./]", value) or re.search("file|fixture|dir|zip", name)
    ):
        return ""
    places = [*context.places, *(posixpath.join(context.folder, each) for each in ("fixtures", "files"))]
    paths = (inside(place, value.strip()) for place in places if value.strip())
    known = (context.upload.files, context.upload.folders)
    return next((path for path in paths if path and any(path in each for each in known)), "")


def read_files(
    case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]
) -> Iterator[FixtureFile]:
    """Yield the files that a case names, as its workspace has them."""
    files = case.get("files")
    listed = [files] if isinstance(files, str) else files or []
    if not isinstance(listed, list):
        what = f"'files' must be a list of paths, not {kind(files)}."
        problems.append(
            context.document.problem((*at, "files"), what, fix='Write ["data.csv"].', id="format/wrong-type")
        )
        return
    for index, item in enumerate(listed):
        here = (*at, "files", index)
        name = item.get("path") if isinstance(item, dict) else item
        if not isinstance(name, str) or not name.strip():
            what = f"A file must be named by its path, not {kind(item)}."
            problems.append(
                context.document.problem(here, what, fix='Write ["data.csv"].', id="format/wrong-type")
            )
            continue
        yield from _named_files(name.strip(), context, here, problems)


def _named_files(
    name: str, context: SkillContext, at: Location, problems: list[Problem]
) -> Iterator[FixtureFile]:
    """Yield a named file, or the files of a named folder, under the path that the case writes."""
    candidates = [path for folder in context.places if (path := inside(folder, name)) is not None]
    if not candidates:
        what = f"'{name}' is outside the upload."
        fix = _same_file(name, context) or "Name a file in the skill's folder, relative to it."
        problems.append(context.document.problem(at, what, fix=fix, id="format/file-outside"))
        return
    upload = context.upload
    path = next((each for each in candidates if each in upload.files or each in upload.folders), None)
    written = posixpath.normpath(name)
    shown = path if path and written.startswith("..") else written
    if path is None:
        places = ", ".join(f"'{each}'" for each in dict.fromkeys(candidates))
        what = f"The file '{name}' is not in the upload. Looked for {places}."
        fix = _same_file(name, context) or "Add the file, or remove it from the case."
        problems.append(context.document.problem(at, what, fix=fix, id="format/missing-file"))
    elif is_below(path, context.document.file):
        what = f"'{name}' contains the evals, so the agent could read its assertions."
        fix = "Name the files that the case needs, or a folder of their own."
        problems.append(context.document.problem(at, what, fix=fix, id="format/fixture-holds-scenario"))
    elif _belongs_to_skill(path, context):
        what = f"'{name}' is part of the skill, so it lies only where agents look for skills."
        problems.append(
            context.document.problem(at, what, fix="Remove it from 'files'.", id="format/own-file", lint=True)
        )
    elif path in upload.files:
        yield FixtureFile(shown, upload.files[path], executable=path in upload.executables)
    else:
        for file in upload.below(path):
            yield FixtureFile(f"{shown}/{file.path}", file.content, executable=file.executable)


def _same_file(name: str, context: SkillContext) -> str:
    """Return a fix that names the one file of the upload whose path ends as `name` does; empty without one."""
    parts = [part for part in re.split(r"[\\/]", name) if part not in ("", ".", "..")]
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        if found := [path for path in context.upload.files if f"/{path}".endswith(f"/{end}")]:
            return f"Write '{found[0]}'." if len(found) == 1 else ""
    return ""


def _belongs_to_skill(path: str, context: SkillContext) -> bool:
    """Return whether an arm without the skill must not have a file."""
    parts = ("SKILL.md", "scripts", "references")
    return any(
        is_below(posixpath.join(skill.folder, part), path) for skill in context.skills for part in parts
    )
