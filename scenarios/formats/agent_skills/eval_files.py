"""Read the eval files of an upload as suites, with the skills that they test as guidance."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalhub.lib.numbers import format_count
from evaluators.model import Json
from scenarios.formats.agent_skills import NAME, TRIGGERS, find_named_paths
from scenarios.formats.agent_skills.case_files import SkillContext, read_skill_name
from scenarios.formats.agent_skills.case_lists import (
    FILES,
    FOLDERS,
    TRIGGER_LISTS,
    are_triggers,
    find_cases,
    find_trigger,
    hold_prompts,
    is_single_case,
    name_of_list,
)
from scenarios.formats.agent_skills.case_reader import ReadCase, read_skill_case
from scenarios.formats.agent_skills.gates_file import NAME as GATES
from scenarios.formats.agent_skills.gates_file import GatesFile, answers_in_files, read_gates_file
from scenarios.formats.agent_skills.skill_folders import (
    Skill,
    find_skills,
    installed_files,
    lower_case_problem,
    name_left_out,
    remove_left_out,
    skills_of,
)
from scenarios.formats.other_programs import hints_of_others
from scenarios.formats.parsed import (
    Fixture,
    FixtureFile,
    Location,
    ParsedSuite,
    PositionedDocument,
    Problem,
    ScenarioFileError,
    find_repeated,
)
from scenarios.formats.upload import UploadedFiles, decode_file, find_targets_file
from scenarios.guidance import SKILLS, split
from scenarios.spec import ScenarioSpec

_KNOWN = frozenset(("skill_name", "skill", "description", "note", "notes", "version", "name", "$schema"))
"""Keys beside the cases that are read, or say nothing about them."""
_FOR_READERS = frozenset(
    [
        "author",
        "category",
        "difficulty",
        "kind",
        "language",
        "meta",
        "metadata",
        "note",
        "notes",
        "purpose",
        "rationale",
        "reason",
        "schema",
        "schema_version",
        "schemaVersion",
        "source",
        "status",
        "version",
        "why",
    ]
)
"""Keys that need no hint."""
_OF_OTHERS = (".yaml", ".yml", ".json", ".toml", ".ts", ".mts")
"""Ends of files beside evals that may be another program's."""
_OF_MANY_CASES = frozenset(("format/no-id", "format/nothing-to-judge"))
WORKSPACE = "workspace"
"""The fixture of cases without files of their own."""


@dataclass
class _EvalFile:
    """One eval file as it is read."""

    document: PositionedDocument
    skill_name: str
    skills: tuple[Skill, ...]
    gates: GatesFile
    written: list[tuple[PositionedDocument, Json, Location]]
    """The cases as they are written, with their places."""
    is_trigger_list: bool = False
    cases: list[ReadCase] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_eval_files(
    upload: UploadedFiles, documents: Sequence[PositionedDocument]
) -> tuple[list[ParsedSuite], list[Problem]]:
    """Return the suites of eval files, and all problems and lints."""
    skills = find_skills(upload)
    folders = {posixpath.dirname(document.file) for document in documents}
    gates = {folder: read_gates_file(upload, folder) for folder in folders}
    files = [
        _read_file(group, upload, skills, gates[posixpath.dirname(group[0].file)])
        for group in _grouped(documents)
    ]
    files[0].problems += _unread_files(upload, documents)
    names = _suite_names(files, upload.name)
    suites = [_suite(file, upload, name) for file, name in zip(files, names, strict=True)]
    problems = [problem for file in files for problem in file.problems]
    for folder, read in gates.items():
        known = {
            name
            for file in files
            if posixpath.dirname(file.document.file) == folder
            for case in file.cases
            for name in case.names
            if name
        }
        problems += [*read.problems, *read.unknown_cases(known)]
    return suites, problems


def problems_without_cases(upload: UploadedFiles) -> list[Problem]:
    """Return a problem for each skill of an upload without cases, and for each file whose prompts nothing reads."""
    problem = lower_case_problem(upload)
    problems = [problem] if problem else []
    for skill in find_skills(upload):
        what = f"The skill '{skill.name}' has no cases yet."
        fix = "Write them into evals/evals.json in its folder; see docs/formats/agent-skills.md."
        problems.append(Problem(skill.file, 1, "", what, fix, "format/no-cases"))
    if problems:
        problems += [unread_prompts(path) for path in sorted(upload.files) if has_prompts(path, upload)]
    return problems


def _grouped(documents: Sequence[PositionedDocument]) -> list[list[PositionedDocument]]:
    """Return the documents of each suite: files of a folder with one case each belong together, with its evals.json."""
    singles: dict[str, list[PositionedDocument]] = {}
    groups: list[list[PositionedDocument]] = []
    for document in documents:
        folder = posixpath.dirname(document.file)
        if is_single_case(document.value) and not are_triggers([document.value], document.file):
            singles.setdefault(folder, []).append(document)
        else:
            groups.append([document])
    for folder, cases in singles.items():
        own = next((each for each in groups if _holds_evals(each[0], folder)), None)
        if own is None:
            groups.append(cases)
        else:
            own += cases
    return sorted(groups, key=lambda group: group[0].file)


def _holds_evals(document: PositionedDocument, folder: str) -> bool:
    is_file = posixpath.split(document.file) in {(folder, name) for name in FILES}
    return is_file and not are_triggers([case for case, _ in find_cases(document.value)], document.file)


def _read_file(
    documents: Sequence[PositionedDocument],
    upload: UploadedFiles,
    skills: Sequence[Skill],
    gates: GatesFile,
) -> _EvalFile:
    """Read the documents of one suite; the first one names the skill."""
    document = documents[0]
    value = document.value if isinstance(document.value, dict) else {}
    skill_name = value.get(_key_of_skill(document))
    name = skill_name.strip() if isinstance(skill_name, str) else ""
    written = [(each, case, at) for each in documents for case, at in find_cases(each.value)]
    is_trigger_list = are_triggers([case for _, case, _ in written], document.file)
    tested = skills_of(document.file, name, skills)
    triggers = [
        find_trigger(case, by_skill=is_trigger_list)[1] for _, case, _ in written if isinstance(case, dict)
    ]
    named = {read_skill_name(each) for each in triggers if isinstance(each, str)}
    tested += tuple(skill for skill in skills if skill.name in named and skill not in tested)
    read = _EvalFile(document, name, tested, gates, written, is_trigger_list)
    if not read.skills:
        read.problems.append(_no_skill(document, name, upload))
    if read.is_trigger_list and len(read.skills) > 1 and True in triggers:
        read.problems.append(_several_skills(document, read.skills))
    if not read.written:
        read.problems.append(_no_cases(document))
    context = SkillContext(document, upload, read.skills, gates, is_trigger_list)
    read.cases = [
        read_skill_case(case, replace(context, document=each), at, position)
        for position, (each, case, at) in enumerate(read.written)
    ]
    read.problems += _say_once([problem for case in read.cases for problem in case.problems])
    read.problems += _unread_keys(read)
    read.problems += _repeated_ids(read)
    read.problems += [lint for skill in read.skills for lint in skill.lints]
    read.problems += [*_other_name(read), *_no_tool(read), *_answers(read)]
    return read


def _key_of_skill(document: PositionedDocument) -> str:
    """Return the key with the skill's name; some authors shorten it."""
    is_short = isinstance(document.value, dict) and "skill_name" not in document.value
    return "skill" if is_short else "skill_name"


def _say_once(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield problems, of hints that many cases give the first with their number."""
    counts = Counter(each.id for each in problems if each.id in _OF_MANY_CASES)
    for each in problems:
        if (count := counts.pop(each.id, 0)) > 1:
            yield replace(
                each, what=f"{each.what} The same holds for {format_count(count - 1, 'more case')}."
            )
        elif count or each.id not in _OF_MANY_CASES:
            yield each


def _no_cases(document: PositionedDocument) -> Problem:
    """Return a hint where the list of cases is empty, and an error where there is no list."""
    name = name_of_list(document.value)
    if not name and not isinstance(document.value, list):
        what, fix = "The file has no list of cases.", "Write the cases as a list 'evals'."
        return document.problem((), what, fix=fix, id="format/no-case-list")
    what, fix = "The file has no cases.", "Add a case to 'evals', or remove the file."
    return document.problem((name,) if name else (), what, fix=fix, id="format/no-cases", lint=True)


def _unread_keys(read: _EvalFile) -> Iterator[Problem]:
    """Yield one hint with all keys that nothing reads and that have no problem of their own."""
    value = read.document.value if isinstance(read.document.value, dict) else {}
    lists = {name_of_list(value)} if name_of_list(value) else TRIGGER_LISTS.keys()
    is_single = any(case is value for _, case, _ in read.written)
    names = [] if is_single else [name for name in value if name not in _KNOWN | lists]
    names += [name for case in read.cases for name in case.unread]
    if names := [name for name in dict.fromkeys(names) if name not in _FOR_READERS]:
        listed = ", ".join(f"'{name}'" for name in names)
        what = f"Nothing reads {listed}."
        fix = "What must hold belongs in 'assertions', what the agent needs in 'prompt' or 'files'."
        if read.is_trigger_list:
            fix = "Of a trigger query, the prompt, 'should_trigger', 'id' and 'files' count."
        yield read.document.problem((), what, fix=fix, id="format/unread-key", lint=True)


def _unread_files(upload: UploadedFiles, documents: Sequence[PositionedDocument]) -> Iterator[Problem]:
    """Yield a hint for each file beside the evals whose prompts nothing reads."""
    folders = {posixpath.dirname(each.file) for each in documents}
    known = {each.file for each in documents}
    known |= {path for each in documents for path in find_named_paths(each, upload)}
    beside = sorted(path for path in upload.files.keys() - known if posixpath.dirname(path) in folders)
    yield from (unread_prompts(path, lint=True) for path in beside if has_prompts(path, upload))
    evals = (path for path in beside if posixpath.basename(posixpath.dirname(path)) in FOLDERS)
    yield from hints_of_others({path: upload.files[path] for path in evals if path.endswith(_OF_OTHERS)})


def unread_prompts(path: str, *, lint: bool = False) -> Problem:
    """Return the problem of a file with prompts that isn't read as cases."""
    what = "Nothing reads the prompts of this file."
    fix = "Move its cases into evals.json, or give each 'should_trigger'."
    return Problem(path, 1, "", what, fix, "format/unread-file", lint=lint)


def has_prompts(path: str, upload: UploadedFiles) -> bool:
    """Return whether a JSON file has a list of prompts, or is a case."""
    if not path.lower().endswith(".json"):
        return False
    try:
        value = decode_file(path, upload.files[path]).value
    except ScenarioFileError:
        return False
    return hold_prompts(find_cases(value))


def _no_skill(document: PositionedDocument, name: str, upload: UploadedFiles) -> Problem:
    if problem := lower_case_problem(upload):
        return problem
    folder = posixpath.dirname(posixpath.dirname(document.file))
    looked = dict.fromkeys(
        posixpath.join(base, place, "SKILL.md")
        for base in (folder, "")
        for place in ("", f"skills/{name or '*'}")
    )
    alone = len(upload.files) == 1
    what = f"The skill{f' {name!r}' if name else ''} is not in the upload. Looked for {', '.join(looked)}."
    fix = "Upload the skill's folder" + (", not this file alone." if alone else ", with SKILL.md and evals/.")
    return document.problem((), what, fix=fix, id="format/no-skill")


def _several_skills(document: PositionedDocument, skills: Sequence[Skill]) -> Problem:
    names = ", ".join(f"'{skill.name}'" for skill in skills)
    what = f"It isn't clear which skill the queries must load: {names}."
    fix = "Move the file into the skill's own folder, as evals/trigger-eval.json."
    return document.problem((), what, fix=fix, id="format/which-skill")


def _other_name(read: _EvalFile) -> Iterator[Problem]:
    # A plug-in's name may precede it.
    name = read.skill_name.rpartition(":")[2]
    if len(read.skills) != 1 or name in ("", read.skills[0].name):
        return
    (skill,) = read.skills
    key = _key_of_skill(read.document)
    what = f"'{key}' is '{read.skill_name}', and {skill.file} calls the skill '{skill.name}'."
    fix = "Write the same name in both."
    yield read.document.problem((key,), what, fix=fix, id="format/skill-name", lint=True)


def _no_tool(read: _EvalFile) -> Iterator[Problem]:
    """Yield a lint with the tool that SKILL.md's code runs most often, where none is named."""
    if read.gates.tool is not None or read.is_trigger_list:
        return
    tools = sorted((pair for skill in read.skills for pair in skill.tools), key=lambda pair: -pair[1])
    if tools:
        tool, count = tools[0]
        times = "once" if count == 1 else f"{count} times"
        what = f"No tool is named, so its commands aren't counted. The skill's code runs `{tool}` {times}."
        fix = f"Write 'tool: {tool}' in {GATES} beside this file, or pass --tool {tool}."
        yield read.document.problem((), what, fix=fix, id="format/tool-not-named", lint=True)


def _answers(read: _EvalFile) -> Iterator[Problem]:
    """Yield a lint for each file of the skills that says word for word what the cases are judged by."""
    specs = [case.spec for case in read.cases if case.spec is not None]
    files = [
        replace(file, path=posixpath.join(skill.folder, file.path))
        for skill in read.skills
        for file in skill.files
    ]
    yield from answers_in_files(files, specs)


def _repeated_ids(read: _EvalFile) -> Iterator[Problem]:
    written = zip(read.cases, read.written, strict=True)
    places = ((case.spec.key, (document, at)) for case, (document, _, at) in written if case.spec)
    for id, (document, at), (earlier, place) in find_repeated(places):
        of_file = f" of {earlier.file}" if earlier.file != document.file else ""
        line = f"line {earlier.positions.line(place)}{of_file}"
        what, fix = f"Duplicate id '{id}', first in {line}.", "Give each case of a file a unique id."
        if read.is_trigger_list:
            what, fix = f"The query is repeated, first in {line}.", "Remove one of them."
        yield document.problem(at, what, fix=fix, id="format/duplicate-scenario")


def _suite_names(files: Sequence[_EvalFile], upload: str) -> list[str]:
    """Return a name for each file: the skill's, or the upload's of several, with the file's where that is taken."""
    taken: set[str] = set()
    names = []
    for file in files:
        base = file.skill_name or (file.skills[0].name if len(file.skills) == 1 else upload or "skill")
        base += TRIGGERS if file.is_trigger_list else ""
        stem = posixpath.splitext(file.document.file)[0]
        options = (base, f"{base}-{posixpath.basename(stem)}", f"{base}-{stem}")
        name = next((option for option in options if option not in taken), options[-1])
        taken.add(name)
        names.append(name)
    return names


def _suite(read: _EvalFile, upload: UploadedFiles, name: str) -> ParsedSuite:
    # A workspace may hold the skill, too, for another agent or as a plug-in's.
    patterns = (f"{SKILLS}/**", *(f"**/skills/{each.name}/**" for each in read.skills))
    initial, copies = split(read.gates.workspace, patterns)
    laid = (*installed_files(read.skills), *initial, *remove_left_out(copies))
    shared = {file.path: file for file in laid}
    specs: list[ScenarioSpec] = []
    fixtures: dict[str, Fixture] = {}
    for case in read.cases:
        if case.spec is not None:
            fixture = case.spec.key if case.files else WORKSPACE
            fixtures.setdefault(fixture, _fixture(shared, case.files))
            specs.append(case.spec.model_copy(update={"fixture": fixture}))
    targets_file, targets_text = find_targets_file(upload)
    return ParsedSuite(
        name=name,
        format=NAME,
        scenarios=tuple(specs),
        fixtures=fixtures,
        guidance=patterns,
        lints=tuple(sorted(dict.fromkeys(each for each in read.problems if each.lint))),
        targets_text=targets_text,
        targets_file=targets_file,
        settings=_settings(read),
        left_out=tuple(
            posixpath.join(skill.folder, each)
            for skill in read.skills
            for each in name_left_out(skill.left_out)
        ),
    )


def _settings(read: _EvalFile) -> dict[str, Json]:
    value = read.document.value if isinstance(read.document.value, dict) else {}
    texts = {name: value[name] for name in ("description", "note") if isinstance(value.get(name), str)}
    return {"skill_name": read.skill_name, "skills": [skill.name for skill in read.skills], **texts}


def _fixture(shared: Mapping[str, FixtureFile], files: Sequence[FixtureFile]) -> Fixture:
    by_path = {file.path: file for file in files}
    return tuple(file for _, file in sorted({**shared, **by_path}.items()))
