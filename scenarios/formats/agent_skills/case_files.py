"""The files that a skill's cases name and a workspace gets, and the skill that a prompt must load."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.grading.gates.transcript_gate import SkillLoaded, SkillNotLoaded
from evaluators.model import Json
from scenarios.formats.agent_skills.case_lists import TRIGGER_KEYS, find_trigger
from scenarios.formats.agent_skills.gates_file import GatesFile
from scenarios.formats.agent_skills.skill_folders import Skill
from scenarios.formats.agentv.file_versions import folders_above
from scenarios.formats.parsed import (
    FixtureFile,
    Location,
    PositionedDocument,
    Problem,
    describe_kind,
    did_you_mean,
)
from scenarios.formats.upload import UploadedFiles, is_below, resolve_inside

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
        return list_file_places(self.document.file, [skill.folder for skill in self.skills], self.upload)


def list_file_places(file: str, skills: Sequence[str], upload: UploadedFiles) -> list[str]:
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
    paths = (resolve_inside(place, value.strip()) for place in places if value.strip())
    known = (context.upload.files, context.upload.folders)
    return next((path for path in paths if path and any(path in each for each in known)), "")


def read_files(
    case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]
) -> Iterator[FixtureFile]:
    """Yield the files that a case names, as its workspace has them."""
    files = case.get("files")
    listed = [files] if isinstance(files, str) else files or []
    if not isinstance(listed, list):
        what = f"'files' must be a list of paths, not {describe_kind(files)}."
        problems.append(
            context.document.problem((*at, "files"), what, fix='Write ["data.csv"].', id="format/wrong-type")
        )
        return
    for index, item in enumerate(listed):
        here = (*at, "files", index)
        name = item.get("path") if isinstance(item, dict) else item
        if not isinstance(name, str) or not name.strip():
            what = f"A file must be named by its path, not {describe_kind(item)}."
            problems.append(
                context.document.problem(here, what, fix='Write ["data.csv"].', id="format/wrong-type")
            )
            continue
        yield from _named_files(name.strip(), context, here, problems)


def _named_files(
    name: str, context: SkillContext, at: Location, problems: list[Problem]
) -> Iterator[FixtureFile]:
    """Yield a named file, or the files of a named folder, under the path that the case writes."""
    candidates = [path for folder in context.places if (path := resolve_inside(folder, name)) is not None]
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


_NONE = frozenset(("", "none", "null", "no_skill"))
"""What authors write for no skill."""


def read_trigger(
    case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]
) -> tuple[SkillLoaded | SkillNotLoaded, ...]:
    """Return the gates on which skills are loaded, for a case that says so: of the skill it names, else of its own."""
    key, wanted = context.trigger_of(case)
    if isinstance(wanted, str) and (name := read_skill_name(wanted)) in _names(context):
        return (SkillLoaded(skill=name),)
    if isinstance(wanted, str):
        wanted = _unknown_skill(key, wanted, context, at, problems)
        if wanted is None:
            return ()
    if wanted is None and key and len(context.skills) > 1:
        # Among names of skills, null means no skill.
        wanted = False
    if wanted is None:
        return ()
    if not isinstance(wanted, bool):
        what = f"'{key}' must be true or false, not {describe_kind(wanted)}."
        fix = "Write true or false without quotes."
        problems.append(context.document.problem((*at, key), what, fix=fix, id="format/wrong-type"))
        return ()
    if not wanted:
        return tuple(SkillNotLoaded(skill=skill.name) for skill in context.skills)
    return (SkillLoaded(skill=context.skills[0].name),) if len(context.skills) == 1 else ()


def read_skill_name(text: str) -> str:
    """Return the name of a skill, before which a plug-in's may stand."""
    return text.strip().rpartition(":")[2]


def _names(context: SkillContext) -> list[str]:
    return [skill.name for skill in context.skills]


def _unknown_skill(
    key: str, wanted: str, context: SkillContext, at: Location, problems: list[Problem]
) -> bool | None:
    """Return False for no skill of the upload; None with an error for what is probably a mistake."""
    if key not in TRIGGER_KEYS and read_skill_name(wanted).lower() in _NONE:
        return False
    close = did_you_mean(wanted, _names(context))
    what = f"'{key}' is '{wanted}', and the upload has no skill of that name."
    if key in TRIGGER_KEYS or close:
        fix = close or "Write true or false without quotes, or the name of a skill."
        problems.append(context.document.problem((*at, key), what, fix=fix, id="format/wrong-type"))
        return None
    fix = "Upload that skill, too; until then, the query checks that the uploaded ones aren't loaded."
    problems.append(context.document.problem((*at, key), what, fix=fix, id="format/unknown-skill", lint=True))
    return False
