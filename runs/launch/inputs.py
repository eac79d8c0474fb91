"""Turns paths and names from the command line into the parts of a request."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User

from evalhub.teams.models import Project
from runs.errors import RequestError
from runs.exchange.results_files.skill_creator import BENCHMARK, WORKSPACE, mean_shares
from runs.launch.given_guidance import GivenDocument, OutsideWorkspace, keep_document
from runs.launch.source_files import read_named
from runs.targets.import_targets import folder_on_disk, import_bundle_targets, import_targets
from scenarios.bundle_limits import read_whole
from scenarios.bundles import read_path
from scenarios.formats.agent_skills.skill_folders import find_skills, installed_files
from scenarios.formats.upload import UploadedFiles
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.guidance import Unplaced
from scenarios.imports import import_files
from scenarios.models import Guidance, Suite, SuiteVersion
from scenarios.naming import find_version

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
    document = GivenDocument(file.name, read_named(file, "The guidance"), place)
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
    content = read_named(path, "The targets")
    import_targets(project, content, path.name, by=by, base_folder=str(path.resolve().parent))
