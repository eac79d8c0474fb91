"""The files that a suite was uploaded as, kept so that people can edit them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scenarios.archives import Member, check_path, collect
from scenarios.bundles import Bundle
from scenarios.formats.parsed import FixtureFile, ParsedSuite
from scenarios.guidance import Guidance
from scenarios.imports import slug_of
from scenarios.models import Suite, SuiteVersion
from scenarios.reading import read_suites
from scenarios.spec import ScenarioSpec
from scenarios.storing import unpack


@dataclass(frozen=True)
class Source:
    """The files of a suite's last upload."""

    version: SuiteVersion
    files: Mapping[str, FixtureFile]
    sha256: str

    def text(self, path: str) -> str | None:
        """Return a file's text; None if it is missing, binary or too large to edit."""
        file = self.files.get(path)
        # Bytes of the largest file that is edited in a browser.
        if file is None or len(file.content) > 500_000 or b"\x00" in file.content:
            return None
        try:
            return file.content.decode()
        except UnicodeDecodeError:
            return None

    def changed(self, path: str, content: bytes | None) -> Bundle:
        """Return the files with another content of one; None removes it. Raises `ScenarioFileError`."""
        return bundle_of(self.version.source_name, [*self.files.values()], path, content)


def bundle_of(name: str, files: Sequence[FixtureFile], path: str, content: bytes | None) -> Bundle:
    """Return an upload of files with one changed, within the limits of uploads. Raises `ScenarioFileError`."""
    check_path(name, path)
    members = [Member(each.path, each.content, each.executable) for each in files if each.path != path]
    was = next((each.executable for each in files if each.path == path), False)
    if content is not None:
        members.append(Member(path, content, was))
    return Bundle.of(name, collect(name, sorted(members, key=lambda member: member.path)))


def source_of(suite: Suite) -> Source | None:
    """Return the files of a suite's last upload; None if they were not kept. Two queries."""
    last = suite.uploads.select_related("suite_version__source", "suite_version__suite").first()
    version = last.suite_version if last else None
    if version is None or version.source is None:
        return None
    files = {each.path: each for each in unpack(bytes(version.source.archive))}
    return Source(version, files, version.source.sha256)


def find_scenario(source: Source, key: str, pattern: str) -> tuple[ScenarioSpec, int] | None:
    """Return a scenario as the files have it now, and how many share its file. Raises `ScenarioFileError`.

    `pattern` is the project's command pattern.
    """
    suite = next(
        (
            parsed
            for parsed in parse_bundle(_whole(source), pattern)
            if slug_of(parsed) == source.version.suite.slug
        ),
        None,
    )
    specs = suite.scenarios if suite else ()
    spec = next((each for each in specs if each.key == key), None)
    return (spec, sum(each.file == spec.file for each in specs)) if spec else None


def _whole(source: Source) -> Bundle:
    executables = frozenset(path for path, file in source.files.items() if file.executable)
    return Bundle(
        source.version.source_name, {path: file.content for path, file in source.files.items()}, executables
    )


def bundle_with_guidance(source: Source, documents: Guidance, other: Guidance) -> Bundle:
    """Return the kept files with other documents in the place of the suite's own; paths are those in the workspace."""
    texts = {file.path: file.content for file in documents}
    places = {
        (path.removesuffix(file.path), file.path)
        for path, stored_file in source.files.items()
        for file in documents
        if f"/{path}".endswith(f"/{file.path}") and stored_file.content == texts[file.path]
    }
    files = {path: file.content for path, file in source.files.items()}
    for folder, path in places:
        del files[f"{folder}{path}"]
    for folder in {folder for folder, _ in places}:
        files |= {f"{folder}{file.path}": file.content for file in other}
    executables = frozenset(path for path, file in source.files.items() if file.executable and path in files)
    return Bundle(source.version.source_name, files, executables)


def parse_bundle(bundle: Bundle, pattern: str) -> tuple[ParsedSuite, ...]:
    """Return the suites of a bundle, as an upload reads them. Raises `ScenarioFileError`."""
    return read_suites(bundle, command_pattern=pattern)
