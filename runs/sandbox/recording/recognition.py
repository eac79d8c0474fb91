"""Recognize the tool in a process that stands right after its exec. Standard library only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat

from runs.sandbox.recording.processes import open_inside
from runs.sandbox.recording.scripts import module_of, script_of

_HASHED_BYTES = 64 << 20

File = tuple[int, int]
"""Device and inode."""
Content = tuple[int, str]
"""Size and hash."""


class WantedProgram:
    """The program under test: its name, and where it may lie as the sandbox sees it."""

    def __init__(self, name: str, places: list[str], *, by_name: bool) -> None:
        self.name = name
        self.places = places
        self.by_name = by_name
        """Whether any program of that name is the tool, wherever it lies."""
        self.known: dict[File, Content] = {}
        self.namesakes: set[File] = set()
        self.is_one_of_many = False
        """Whether the tool is a link to a program of many names, such as busybox."""
        self._hashes: dict[tuple[int, int, int, int], str] = {}

    def matches(self, pid: int, path: str, argv: list[str], exe: str, cwd: str) -> str:
        """Return how a program is the tool: `file`, `copy`, `name`, `argument` or `module`; empty if it is not."""
        # Read the tool's own files: they may be built, installed or replaced while the agent works.
        for place in self.places:
            with contextlib.suppress(OSError):
                file, content, real = self._file(pid, place, is_hashed=True)
                self.known[file] = content
                name = real.rsplit("/", 1)[-1]
                self.is_one_of_many = name != self.name and not name.endswith(
                    (".js", ".py", ".mjs", ".cjs", ".ts", ".rb", ".sh", ".pl")
                )
        at, is_module = script_of(argv, exe)
        if at and not self.is_script(pid, path, cwd):
            if is_module:
                return "module" if module_of(argv[at]) == self.name else ""
            if self._same(pid, argv[at], cwd):
                return "argument"
        return self._same(pid, path, cwd)

    def is_script(self, pid: int, path: str, cwd: str) -> bool:
        """Return whether the kernel started an interpreter for a script: the path isn't the running program's."""
        try:
            running = os.stat(f"/proc/{pid}/exe")
            return self._file(pid, os.path.join(cwd or "/", path), is_hashed=False)[0] != (
                running.st_dev,
                running.st_ino,
            )
        except OSError:
            return False

    def _same(self, pid: int, path: str, cwd: str) -> str:
        try:
            full = os.path.join(cwd or "/", path)
            file, content, _ = self._file(pid, full, is_hashed=False)
        except OSError:  # removed, or in memory: the image itself is still there
            full, (file, content) = "", self._image(pid)
        is_named = path.rsplit("/", 1)[-1] == self.name
        if file in self.known and (is_named or not self.is_one_of_many):
            return "file"
        if content[0] in {size for size, _ in self.known.values()}:
            if not content[1] and full:
                with contextlib.suppress(OSError):
                    content = self._file(pid, full, is_hashed=True)[1]
            if content in self.known.values() and (is_named or not self.is_one_of_many):
                return "copy"
        if is_named and (self.by_name or not self.known):
            # Installed while the agent works, or found in a virtual environment: now its file counts.
            self.namesakes.add(file)
        return "name" if file in self.namesakes else ""

    def _file(self, pid: int, path: str, *, is_hashed: bool) -> tuple[File, Content, str]:
        descriptor = open_inside(pid, path)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise OSError("not a file")
            digest = self._hash(f"/proc/self/fd/{descriptor}", state) if is_hashed else ""
            return (
                (state.st_dev, state.st_ino),
                (state.st_size, digest),
                os.readlink(f"/proc/self/fd/{descriptor}"),
            )
        finally:
            os.close(descriptor)

    def _image(self, pid: int) -> tuple[File, Content]:
        path = f"/proc/{pid}/exe"
        state = os.stat(path)
        is_like = state.st_size in {size for size, _ in self.known.values()}
        return (state.st_dev, state.st_ino), (state.st_size, self._hash(path, state) if is_like else "")

    def _hash(self, path: str, state: os.stat_result) -> str:
        key = (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size)
        if key not in self._hashes:
            with open(path, "rb") as content:
                self._hashes[key] = hashlib.sha256(content.read(_HASHED_BYTES)).hexdigest()
        return self._hashes[key]
