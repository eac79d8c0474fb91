"""Read session files into what is stored of them; nothing outside the given paths is read."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from msgspec import structs

from evalhub.lib.numbers import format_count
from evaluators.tool_use.flag_confusion import HelpPage, find_confusions
from evaluators.tool_use.interaction import describe_unread
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.unknown_launchers import count_unknown_launchers
from evaluators.transcripts.sessions import IMPORTERS, UnreadableSession, parse_session_file
from evaluators.transcripts.sessions.kept import (
    KeptSession,
    Known,
    Traced,
    describe_copies,
    join_parts,
    keep_session,
    without_copies,
)
from evaluators.transcripts.sessions.session import ToolOnly, Trail, keep_whole
from scenarios.reading import FileReader

ENDINGS = (".jsonl", ".json", ".eval", ".aider.chat.history.md")
"""Files of a folder that are read; a file that is named itself may have any ending."""


@dataclass
class ReadSessions:
    """The sessions of files, and what could not be read."""

    sessions: list[KeptSession] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One sentence each, with file and line."""
    without: int = 0
    """Sessions that never called the tool; nothing of them is kept."""
    mentions: int = 0
    """Their shell commands that name the tool."""
    launchers: dict[str, int] = field(default_factory=dict)
    """Their commands by the unknown program before the tool."""
    copied: int = 0
    """Sessions whose every call counts in another one."""
    help: dict[str, HelpPage] = field(default_factory=dict)
    """The tool's help pages that agents read, by subcommand."""
    trails: list[Trail] = field(default_factory=list)
    """Of each session, what shows whether another file has its calls."""
    others: list[Traced] = field(default_factory=list)
    """Sessions without the tool, which aren't stored. Another file may have parts or messages of them."""

    def add(self, name: str, file: IO[bytes], tool: Tool, *, whole: bool) -> None:
        """Add a file's sessions, or a sentence on why there are none."""
        try:
            sha256 = _hash(file)
            agent, sessions, problems = parse_session_file(
                file, IMPORTERS, keep_whole if whole else ToolOnly(tool)
            )
            for session in sessions:
                self._count_launchers(count_unknown_launchers(session.transcript, tool))
                read = keep_session(
                    session, tool, agent=agent, sha256=sha256, file=Path(name).name, whole=whole
                )
                self.help |= read.help
                if unread := describe_unread(read.kept.unread):
                    self.problems.append(f"{name}: {unread}")
                if read.kept.commands:
                    self.sessions.append(read.kept)
                    self.trails.append(read.trail)
                else:
                    self.without += 1
                    self.mentions += read.kept.mentioned
                    bare = structs.replace(read.kept.transcript, events=(), text="", answer="")
                    trail = structs.replace(read.trail, tokens={})
                    self.others.append(Traced(structs.replace(read.kept, transcript=bare), trail))
        except UnreadableSession as error:
            self.problems.append(f"{name}: {error}")
        except OSError as error:
            self.problems.append(f"{name}: cannot be read: {error.strerror}.")
        else:
            self.problems += [f"{name}: {sentence}" for sentence in problems]

    def take(self, other: ReadSessions) -> None:
        """Add what was read of another file."""
        self.sessions += other.sessions
        self.trails += other.trails
        self.others += other.others
        self.problems += other.problems
        self.without += other.without
        self.mentions += other.mentions
        self._count_launchers(other.launchers)
        self.help |= other.help

    def _count_launchers(self, counts: Mapping[str, int]) -> None:
        self.launchers = dict(Counter(self.launchers) + Counter(counts))

    def without_copies(self, known: Mapping[str, Known]) -> ReadSessions:
        """Join the parts of a session, and leave out what a forked or continued one's file took over from another.

        `known` are those that were imported before, by the session's id.
        """
        pairs = zip(self.sessions, self.trails, strict=True)
        traced = [
            structs.replace(session, known=known.get(session.kept.id, Known()))
            for session in join_parts([*(Traced(*pair) for pair in pairs), *self.others])
        ]
        with_tool = sum(bool(session.kept.commands) for session in traced)
        self.without = len(traced) - with_tool
        uncopied = without_copies(traced)
        self.problems += [
            problem for session in uncopied for problem in describe_copies(session.kept.file, session)
        ]
        remaining = [
            (session.kept, each.trail)
            for session, each in zip(uncopied, traced, strict=True)
            if session.kept.commands
        ]
        self.copied = with_tool - len(remaining)
        self.sessions, self.trails = [each for each, _ in remaining], [trail for _, trail in remaining]
        return self

    def without_parts_of(self, stored: Mapping[str, frozenset[str]]) -> ReadSessions:
        """Leave out a session if another part of it was imported, with a sentence on each.

        Either has calls that the other lacks. `stored` are what is the same in a copy of the imported calls, by the
        session's id.
        """
        parts = [
            each
            for each in self.sessions
            if (imported := stored.get(each.id))
            and imported.difference(each.copies)
            and not imported.issuperset(each.copies)
        ]
        for each in parts:
            calls = format_count(len(stored[each.id].difference(each.copies)), "call")
            self.problems.append(
                f"{each.file}: a part of the session {each.id}, and another part of it is imported, with {calls} "
                "that this one lacks. Import both files together."
            )
        pairs = [pair for pair in zip(self.sessions, self.trails, strict=True) if pair[0] not in parts]
        self.copied += len(parts)
        self.sessions, self.trails = [each for each, _ in pairs], [trail for _, trail in pairs]
        return self

    def with_flags(self, pages: dict[str, HelpPage]) -> ReadSessions:
        """Compare failed calls with the tool's help: `pages`, and those that agents read."""
        known = pages | self.help
        self.sessions = [
            structs.replace(session, flags=tuple(find_confusions(session.commands, known)))
            for session in self.sessions
        ]
        return self


@FileReader
def read_session_file(name: str, content: bytes, tool: Tool, whole: bool) -> ReadSessions:
    """Return the sessions of an uploaded file."""
    sessions = ReadSessions()
    sessions.add(name, io.BytesIO(content), tool, whole=whole)
    return sessions


def read_uploads(files: Iterable[tuple[str, IO[bytes]]], tool: Tool, *, whole: bool = False) -> ReadSessions:
    """Read uploaded session files, one at a time. Raises `ScenarioFileError` and `TryLater`."""
    sessions = ReadSessions()
    for name, file in files:
        sessions.take(read_session_file(name, file.read(), tool, whole))
    return sessions


def read_paths(paths: Iterable[Path], tool: Tool, *, whole: bool) -> ReadSessions:
    """Read the session files in files and folders, one at a time."""
    sessions = ReadSessions()
    for root in paths:
        for path in _files(root, sessions.problems):
            try:
                file = _open_regular_file(path)
            except OSError as error:
                sessions.problems.append(_unreadable(error))
            else:
                with closing(file):
                    sessions.add(str(path), file, tool, whole=whole)
    return sessions


def _hash(file: IO[bytes]) -> str:
    """Return the hash of a file, whose position is then its beginning."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def _open_regular_file(path: Path) -> IO[bytes]:
    # Not following a link and not waiting for a pipe that took the file's place.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def _files(root: Path, problems: list[str]) -> Iterator[Path]:
    """Yield the regular files below a path in their order; links that lead out of it become problems."""
    if not root.exists():
        problems.append(f"{root}: there is no such file or folder. Check the path.")
        return
    base = root.resolve()
    if base.is_file():
        yield base
        return
    for folder, folders, names in os.walk(base, onerror=lambda error: problems.append(_unreadable(error))):
        folders.sort()
        for name in sorted(each for each in names if each.endswith(ENDINGS)):
            path = Path(folder, name)
            if path.is_symlink():
                # A link to a file inside leads to one that is read anyway.
                if not path.resolve().is_relative_to(base):
                    problems.append(f"{path}: a link out of the folder; not read.")
            elif stat.S_ISREG(path.lstat().st_mode):
                yield path


def _unreadable(error: OSError) -> str:
    return f"{error.filename}: cannot be read: {error.strerror}."
