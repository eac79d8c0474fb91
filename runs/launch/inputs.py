"""Turn paths and names from the command line into the parts of a request.

These are suites, guidance and targets; seed manifests, snapshots and tool registries; and the JSON file of
`--config` with defaults of options. Its names are those of tool-forge's eval runner contract (Runner Configuration)
and of forge.config.json, which has the agent under `agent` and folders under `evals` and `project`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
from django.contrib.auth.models import User

from evalhub.teams.models import Project
from evaluators.model import Json
from evaluators.statistics.staleness import Registry
from runs.errors import RequestError
from runs.exchange.results_files.skill_creator import BENCHMARK, WORKSPACE, mean_shares
from runs.targets.import_targets import folder_on_disk, import_bundle_targets, import_targets
from scenarios.adopted_guidance import last_guidance
from scenarios.archives import read_whole
from scenarios.bundles import read_path
from scenarios.formats.agent_skills.skill_folders import find_skills, installed_files
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.tool_registry import read_registry, registry_of
from scenarios.formats.upload import UploadedFiles, resolve_inside
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.guidance import Unplaced, place_documents, replace_documents
from scenarios.imports import import_files
from scenarios.models import Guidance, Suite, SuiteVersion
from scenarios.naming import LONGEST_NAME, find_version
from scenarios.storing import guidance_files, store_guidance
from scenarios.tool_descriptions import read_descriptions

_SOURCE_FILES = ("*.json", "*.ts", "*.js", "*.mts", "*.mjs", "*.cts", "*.cjs")
MOST_WARNINGS = 20
MOST_SOURCE_FILES = 5000


def read_named_file(path: Path, what: str) -> bytes:
    """Return the content of a file that somebody named. Raises `RequestError`, which names it as `what`."""
    try:
        return read_whole(path)
    except OSError as error:
        raise RequestError(f"{path}: {what} cannot be read: {error.strerror}. Check the path.") from error


def read_json_file(path: Path, what: str) -> Json:
    """Return a JSON file's value. Raises `RequestError`, which names it as `what`."""
    content = read_named_file(path, what)
    try:
        return json.loads(content)
    except ValueError as error:
        raise RequestError(f"{path}: {what} is not JSON: {error}. Correct it.") from error


def read_registry_file(path: Path) -> Json:
    """Return the registry at a path (a JSON file, a barrel, a tool file or a folder of them) as JSON.

    Nothing is executed. Raises `RequestError` if it has no tools.
    """
    root = path if path.is_dir() else path.parent
    if not path.exists():
        raise RequestError(f"{path}: There is no tool registry. Check the path.")
    sources = [
        file for pattern in _SOURCE_FILES for file in root.rglob(pattern) if "node_modules" not in file.parts
    ]
    if len(sources) > MOST_SOURCE_FILES:
        raise RequestError(
            f"{root}: There are more than {MOST_SOURCE_FILES} source files. Name the registry itself."
        )
    files = {file.relative_to(root).as_posix(): file.read_bytes() for file in sources if file.is_file()}
    name = path.relative_to(root).as_posix() if path != root else "."
    reading = read_registry(files, name)
    if reading.registry is None:
        raise RequestError(f"{path}: {' '.join(reading.warnings) or 'There is no tool in it.'}")
    return _stored_registry(reading.registry, reading.warnings)


def _stored_registry(registry: Registry, warnings: Sequence[str]) -> Json:
    """Return a registry as stored with a run, which shows what could not be read of it."""
    stored: Json = msgspec.to_builtins(
        msgspec.structs.replace(registry, warnings=tuple(warnings[:MOST_WARNINGS]))
    )
    return stored


def registry_from(value: Json, source: str) -> Json:
    """Return a registry from received JSON, such as an MCP `tools/list` response. Raises `RequestError`."""
    reading = registry_of(value, source)
    if reading.registry is None:
        raise RequestError(" ".join(reading.warnings))
    return _stored_registry(reading.registry, reading.warnings)


def given_sources(options: dict[str, Any]) -> dict[str, Any]:
    """Return the run options for seed manifest, snapshot, registry and tool descriptions.

    Raises `RequestError` or `ScenarioFileError`.

    Files are read now; the worker reads an address or runs a command just before the run.
    """
    values: dict[str, Any] = {}
    if options["seed_manifest"]:
        values["seed"] = read_json_file(Path(options["seed_manifest"]), "The seed manifest")
    if options["snapshot"]:
        values |= _file_or_source(
            options["snapshot"], "snapshot", lambda path: read_json_file(path, "The snapshot")
        )
    if options["tool_registry"]:
        values |= _file_or_source(options["tool_registry"], "registry", read_registry_file)
    if options["tool_descriptions"]:
        path = Path(options["tool_descriptions"])
        values["descriptions"] = read_descriptions(read_named_file(path, "The tool descriptions"), path.name)
    return values


def _file_or_source(value: str, name: str, read: Any) -> dict[str, Any]:
    # A command may be too long for a path: os.path returns False where pathlib raises.
    return {name: read(Path(value))} if os.path.exists(value) else {f"{name}_source": value}  # noqa: PTH110


TARGET = "agent-endpoint"
"""Name of the target made from a configuration's endpoint."""
TIMEOUT_MS = 60_000.0
OUTPUT_DIR = "evals/results/"
"""The contract's defaults, where the configuration says nothing else."""
_AGENT_FIELDS = {
    "method": "method",
    "headers": "headers",
    "inputField": "input_field",
    "outputField": "output_field",
    "sessionField": "session_field",
}


def apply_config(project: Project, options: dict[str, Any]) -> None:
    """Fill in missing options from the `--config` file. Raises `RequestError`.

    An endpoint becomes the target `agent-endpoint`, the default if no target is named.
    """
    if not options["config"]:
        return
    path = Path(options["config"])
    defaults, target = read_config(path)
    options |= {name: value for name, value in defaults.items() if not options[name] and value}
    if target:
        text = yaml.safe_dump({"targets": [target]}).encode()
        import_targets(project, text, path.name, by=None, base_folder=str(path.resolve().parent))
        options["targets"] = options["targets"] or [TARGET]


def read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a configuration file's options of the command, empty ones too, and the entry of its target; empty without.

    Its paths are relative to its folder. Raises `RequestError`.
    """
    value = read_json_file(path, "The configuration")
    if not isinstance(value, dict):
        raise RequestError(
            f"{path}: The configuration is not a JSON object. Write {{…}} around its settings."
        )
    agent, evals, of_project = (_object(path, value, name) for name in ("agent", "evals", "project"))
    milliseconds = _number(path, value, "timeoutMs") or _number(path, agent, "timeoutMs") or TIMEOUT_MS
    defaults = {
        "seed_manifest": _path(path, value.get("seedManifestPath") or evals.get("seedManifestFile")),
        "snapshot": _text(path, value, "snapshot") if value.get("snapshotEnabled") else "",
        "tool_registry": _path(path, value.get("toolRegistryPath") or of_project.get("barrelsFile")),
        "output_dir": _path(path, value.get("outputDir") or OUTPUT_DIR),
        "baseline": str(value.get("baselineRunId") or ""),
        "concurrency": int(_number(path, value, "concurrency")),
        "timeout_seconds": milliseconds / 1000,
    }
    url = value.get("agentEndpoint") or agent.get("endpoint")
    fields = {ours: agent[theirs] for theirs, ours in _AGENT_FIELDS.items() if theirs in agent}
    return defaults, {"name": TARGET, "provider": "http", "url": url, **fields} if url else {}


def _object(path: Path, where: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = where.get(name) or {}
    if not isinstance(value, dict):
        raise RequestError(f"{path}: '{name}' is not an object. Write {{…}} there.")
    return value


def _text(path: Path, where: Mapping[str, Any], name: str) -> str:
    value = where.get(name)
    if not isinstance(value, str) or not value:
        raise RequestError(
            f"{path}: 'snapshotEnabled' is set without '{name}'. Give it a file, an address or a command."
        )
    return value


def _number(path: Path, where: Mapping[str, Any], name: str) -> float:
    value = where.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise RequestError(f"{path}: '{name}' is {value!r}. Give it a number above 0.")
    return float(value)


def _path(config: Path, value: Any) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise RequestError(f"{config}: {value!r} is not a path. Write it as text.")
    return str(config.resolve().parent / value)


class OutsideWorkspace(Unplaced):
    """The path that a document was given leads out of the workspace."""


@dataclass(frozen=True)
class GivenDocument:
    """A guidance document by its file's name, with its path in the workspace if one was given."""

    file: str
    content: bytes
    path: str = ""
    base: Guidance | None = None
    """The version that it changes; None for that of the suite's last upload."""


@dataclass(frozen=True)
class LaidDocument:
    """A suite's guidance with one document replaced or added."""

    files: GuidanceFiles
    path: str
    """Path of the document in the workspace."""
    name: str
    """The name of the version if it is new; empty if the document's own name says it."""


def place_document(version: SuiteVersion, document: GivenDocument) -> LaidDocument:
    """Return the suite's guidance with the document. Raises `Unplaced` with a sentence without the remedy."""
    files = guidance_files(document.base or last_guidance(version.suite) or version.guidance)
    path = resolve_inside("", document.path or document.file)
    if path in (None, "."):
        raise OutsideWorkspace(f"'{document.path or document.file}' is outside the workspace.")
    file = FixtureFile(str(path), document.content)
    (laid,) = place_documents((file,), files, named=(file.path,) if document.path else ())
    name = f"{document.file} over {laid.path}"[-LONGEST_NAME:] if laid.path != document.file else ""
    return LaidDocument(replace_documents(files, (laid,)), laid.path, name)


def keep_document(
    version: SuiteVersion, document: GivenDocument, *, by: User | None
) -> tuple[Guidance, bool]:
    """Store the suite's guidance with the document; return the version and whether it is new. Raises `Unplaced`."""
    laid = place_document(version, document)
    place = document.file[-LONGEST_NAME:], laid.path
    return store_guidance(version.suite, laid.files, by=by, name_if_new=laid.name, laid=place)


logger = logging.getLogger(__name__)


def suite_versions(
    project: Project, names: Sequence[str], *, by: User | None, strict: bool = False
) -> list[SuiteVersion]:
    """Return the suite versions at these paths or with these names; files are stored first.

    `strict` is that of `parse_files`. Raises `ScenarioFileError` for invalid files and `RequestError` for unknown names.
    """
    versions: list[SuiteVersion] = []
    for name in names:
        path = Path(name)
        if path.exists():
            imported = import_files(read_path(path), project=project, by=by, strict=strict)
            for suite in imported:
                import_bundle_targets(
                    suite.version, by=by, base_folder=folder_on_disk(path, suite.version.targets_file)
                )
            versions += [suite.version for suite in imported]
        else:
            versions.append(find_newest_version(project, name))
    return versions


def find_newest_version(project: Project, slug: str) -> SuiteVersion:
    """Return the latest suite version. Raises `RequestError`."""
    suite = Suite.objects.filter(project=project, slug=slug).first()
    upload = suite.uploads.select_related("suite_version").first() if suite else None
    if upload is None:
        raise RequestError(f"'{slug}' is neither a path nor a suite of {project.name}. Check the spelling.")
    return upload.suite_version


def select_guidance(
    versions: Sequence[SuiteVersion], names: Sequence[str], *, by: User | None
) -> list[Guidance]:
    """Return guidance versions by file, number, name or start of a hash.

    A file replaces a document of each suite, the one at PATH if given as `PATH=FILE`; the result is stored as a
    version. Raises `RequestError`.
    """
    return [_guidance(version, name, by) for version in versions for name in names]


def _guidance(version: SuiteVersion, name: str, by: User | None) -> Guidance:
    suite, (place, _, file) = version.suite, name.partition("=")
    if Path(name).is_file():
        return _from_file(version, Path(name), "", by)
    if place and file and Path(file).is_file():
        return _from_file(version, Path(file), place, by)
    if guidance := find_version(suite, name):
        return guidance
    numbers = ", ".join(str(each.number) for each in suite.guidance.all()) or "none"
    raise RequestError(
        f"'{name}' is neither a file nor a guidance version of {suite.name}. It has: {numbers}."
    )


def read_benchmarks(names: Sequence[str], versions: Sequence[SuiteVersion]) -> dict[str, dict[str, float]]:
    """Return what the benchmark.json of workspaces beside the named skill folders says, by the slug of their suites."""
    slugs = {version.suite.slug for version in versions}
    shares = {}
    for name in names:
        folder = Path(name).resolve()
        workspace = folder.with_name(folder.name + WORKSPACE)
        slug = folder.name if folder.name in slugs or len(names) > 1 else next(iter(slugs))
        if folder.is_dir() and workspace.is_dir() and slug in slugs:
            paths = (path for path in workspace.rglob(BENCHMARK) if path.is_file() and not path.is_symlink())
            files = {path.relative_to(workspace).as_posix(): read_whole(path) for path in paths}
            shares[slug] = mean_shares(files)
    return shares


def read_previous(name: str) -> str | GuidanceFiles:
    """Return the files of the skill in a folder; another name is returned as it is. Raises `RequestError`."""
    path = Path(name)
    if not name or not path.exists():
        return name
    files: GuidanceFiles = ()
    if path.is_dir():
        bundle = read_path(path)
        files = installed_files(find_skills(UploadedFiles(bundle.name, bundle.files, bundle.executables)))
    if not files:
        raise RequestError(
            f"--previous {name}: There is no skill. Name a folder with SKILL.md, a version of the suite's guidance, or"
            " none."
        )
    return files


def _from_file(version: SuiteVersion, file: Path, place: str, by: User | None) -> Guidance:
    """Store the suite's guidance with one document replaced by a file. Raises `RequestError`."""
    document = GivenDocument(file.name, read_named_file(file, "The guidance"), place)
    try:
        return keep_document(version, document, by=by)[0]
    except OutsideWorkspace as error:
        raise RequestError(f"--guidance {place}={file}: {error} Give a path inside it.") from error
    except Unplaced as error:
        raise RequestError(
            f"{file}: {error} Name its path in the workspace: --guidance PATH={file}."
        ) from error


def import_targets_file(project: Project, path: Path, *, by: User | None) -> None:
    """Store the targets of a file; its relative paths start from its folder."""
    content = read_named_file(path, "The targets")
    import_targets(project, content, path.name, by=by, base_folder=str(path.resolve().parent))
