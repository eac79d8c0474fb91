"""Read files, folders and archives as paths and contents, within limits.

For a folder that a command was given, also what AgentV's eval files name above it, such as `prompts/` beside
`evals/`.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from scenarios.archives import (
    MAX_ARCHIVE_BYTES,
    MAX_FILE_BYTES,
    Member,
    bundle_error,
    collect,
    is_archive_file,
    read_members,
)
from scenarios.formats import companions_of, decode_by_extension, detect_format
from scenarios.formats.agent_skills import NAME as SKILLS_FORMAT
from scenarios.formats.agent_skills.gates_file import name_tool
from scenarios.formats.agentv import FORMAT
from scenarios.formats.parsed import PositionedDocument
from scenarios.formats.solutions import FOLDER as SOLUTIONS
from scenarios.formats.upload import resolve_inside


def find_files_above(root: Path, files: Mapping[str, bytes]) -> tuple[Path, list[Path]]:
    """Return the nearest folder that holds `root` and all that its eval files name above it, and those files.

    They are in the same repository; without one, in the folder above `evals/`. No link is followed. `files` are those
    of `root`, which is resolved, by path.
    """
    repository = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    limit = repository or (root.parent if root.name == "evals" else root)
    named = {
        path
        for path, content in files.items()
        if b"../" in content and path.endswith((".yaml", ".yml", ".jsonl"))
    }
    # By its words: a link on the way would lead elsewhere.
    outside = {
        place
        for path in named
        for name in _names_above(path, files[path])
        if (place := Path(os.path.normpath((root / posixpath.dirname(path)) / name))).is_relative_to(limit)
        and not place.is_relative_to(root)
        and not root.is_relative_to(place)
    }
    found = sorted({file for place in outside for file in _files_of(place)})
    return Path(os.path.commonpath([root, *(file.parent for file in found)])), found


def _names_above(path: str, content: bytes) -> Iterator[str]:
    document = decode_by_extension(path, content)
    if document is not None and FORMAT.matches(path, document.value):
        yield from (name for name in FORMAT.companions(document) if name.startswith("../"))


def _files_of(place: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder; nothing that a link leads to."""
    if place.resolve() != place:
        return
    if place.is_file():
        yield place
    for folder, folders, names in os.walk(place):
        folders[:] = [each for each in folders if each != ".git"]
        paths = (Path(folder, name) for name in names)
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


@dataclass(frozen=True)
class Bundle:
    """Files of one upload. Paths are relative, with forward slashes; `name` names the suite."""

    name: str
    files: Mapping[str, bytes]
    executables: frozenset[str] = field(default_factory=frozenset)
    decoded: Mapping[str, PositionedDocument] = field(default_factory=dict)
    """Documents that were decoded while reading."""

    @classmethod
    def of(cls, name: str, members: Sequence[Member]) -> Bundle:
        """Return members within the limits as a bundle."""
        executables = frozenset(member.path for member in members if member.executable)
        return cls(name, {member.path: member.content for member in members}, executables)


def read_path(path: Path) -> Bundle:
    """Read a folder, an archive, or a scenario file with the files it references, those of AgentV also above it.

    Raises `ScenarioFileError` if it is missing, too large, or contains forbidden files.
    """
    try:
        if path.is_dir():
            root = path.resolve()
            return _with_files_above(_bundle(root.name, root.name, _walk(root, root, ())), root)
        content = _content(path, path.name, limit=MAX_ARCHIVE_BYTES)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        raise bundle_error(
            str(path), "", f"The path cannot be read: {reason}.", "Check the path.", "bundle/unreadable"
        ) from error
    if is_archive_file(path.name, content):
        return unpack_archive(path.name, content)
    return _with_files_above(_with_companions(path, content), path.resolve().parent)


def with_tool(bundle: Bundle, tool: str) -> Bundle:
    """Return a bundle with the tool under test of its skills named. Raises `ScenarioFileError` if it has no evals of one."""
    evals = [
        path
        for path, content in bundle.files.items()
        if path.endswith((".json", ".yaml", ".yml")) and detect_format(path, content) == SKILLS_FORMAT
    ]
    if not evals:
        raise bundle_error(
            bundle.name,
            "",
            "--tool names the tool that a skill's evals test, but the upload has no evals/evals.json.",
            "Leave it out.",
            "bundle/no-skill",
        )
    files = dict(bundle.files)
    for folder in sorted({posixpath.dirname(path) for path in evals}):
        files = name_tool(files, folder, tool)
    return replace(bundle, files=files)


def unpack_upload(name: str, data: bytes) -> Bundle:
    """Read an uploaded archive or single file."""
    if is_archive_file(name, data):
        return unpack_archive(name, data)
    file = posixpath.basename(name.replace("\\", "/")) or "upload.yaml"
    return Bundle(_stem(file), {file: data})


def unpack_archive(name: str, data: bytes) -> Bundle:
    """Read a zip or tar archive. A single top folder is the bundle itself and its name.

    Raises `ScenarioFileError` for archives that write outside, hide files or expand without limit.
    """
    return _without_top_folder(_bundle(name, _stem(name), read_members(name, data)))


def read_folder(files: Sequence[tuple[str, bytes]]) -> Bundle:
    """Return the files of a folder by their paths, which begin with its name. Raises `ScenarioFileError`.

    A file that begins with `#!` is executable.
    """
    name = files[0][0].split("/")[0]
    # Browsers don't say which files are executable.
    members = (Member(path, content, executable=content.startswith(b"#!")) for path, content in files)
    return _without_top_folder(_bundle(name, name, members))


def _without_top_folder(bundle: Bundle) -> Bundle:
    top = {path.split("/")[0] for path in bundle.files}
    if len(top) != 1 or any("/" not in path for path in bundle.files):
        return bundle
    folder = top.pop()
    return Bundle(
        folder,
        {path.removeprefix(folder + "/"): content for path, content in bundle.files.items()},
        frozenset(path.removeprefix(folder + "/") for path in bundle.executables),
    )


def _bundle(archive: str, name: str, members: Iterator[Member]) -> Bundle:
    relevant = collect(archive, members)
    if not relevant:
        raise bundle_error(
            archive, "", "The upload has no files.", "Add the suite's files.", "bundle/no-files"
        )
    return Bundle.of(name, relevant)


def _stem(name: str) -> str:
    """Return a file's name without extension: `git.yaml` and `git.tar.gz` are both `git`."""
    base = posixpath.basename(name)
    for ending in (".tar.gz", ".eval.yaml", ".eval.yml"):
        if base.lower().endswith(ending):
            return base[: -len(ending)] or base
    return posixpath.splitext(base)[0] or base


def _with_companions(path: Path, content: bytes) -> Bundle:
    root = path.resolve().parent
    members = [Member(path.name, content)]
    document = decode_by_extension(path.name, content)
    for named in companions_of(document) if document else ():
        companion = root / (resolve_inside("", named) or path.name)
        if companion == root or companion.name == path.name or not companion.resolve().is_relative_to(root):
            continue
        if companion.is_dir():
            members += _walk(root, companion, ())
        elif companion.is_file():
            members.append(_member(root, companion))
    if document and (root / SOLUTIONS).is_dir():
        members += [each for each in _walk(root, root / SOLUTIONS, ()) if each.path.endswith(".sh")]
    unique = {member.path: member for member in members}
    bundle = _bundle(path.name, _stem(path.name), iter(unique.values()))
    return replace(bundle, decoded={path.name: document}) if document else bundle


def _with_files_above(bundle: Bundle, root: Path) -> Bundle:
    """Return a bundle of a folder with what its eval files name above it, and paths from the folder that has both."""
    folder, found = find_files_above(root, bundle.files)
    if not found:
        return bundle
    prefix = root.relative_to(folder).as_posix()
    own = (
        Member(f"{prefix}/{path}", content, executable=path in bundle.executables)
        for path, content in bundle.files.items()
    )
    return _bundle(bundle.name, bundle.name, iter([*own, *(_member(folder, file) for file in found)]))


def _walk(root: Path, folder: Path, above: tuple[Path, ...]) -> Iterator[Member]:
    """Yield the files below a folder, following links within the root."""
    real = folder.resolve()
    if real in above:
        raise bundle_error(
            root.name,
            _name(root, folder),
            "The link points to a folder above it.",
            "Remove it.",
            "bundle/link",
        )
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() and not entry.resolve().is_relative_to(root):
            raise bundle_error(
                root.name,
                _name(root, entry),
                "The link points outside the folder.",
                "Replace it with a copy.",
                "bundle/link",
            )
        if entry.is_dir():
            yield from () if entry.name == ".git" else _walk(root, entry, (*above, real))
        else:
            yield _member(root, entry)


def _member(root: Path, path: Path) -> Member:
    name = _name(root, path)
    executable = bool(path.stat().st_mode & stat.S_IXUSR)
    return Member(name, _content(path, name), executable=executable)


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _content(path: Path, name: str, *, limit: int = MAX_FILE_BYTES) -> bytes:
    """Return a regular file's content, at most one byte over the limit. Opening a pipe does not block."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise bundle_error(
                name, "", "It is neither a file nor a folder.", "Remove it.", "bundle/not-regular"
            )
        return file.read(limit + 1)
