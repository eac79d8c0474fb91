"""Take out what an agent added to the settings of Git repositories so that Git would execute it.

Git executes programs that a repository's configuration, hooks and attributes name. No variable switches all of them
off, so they are removed before scripts and gates run. Git reads and writes configuration files, in the sandbox.
"""

from __future__ import annotations

import os
import posixpath
import re
import secrets
import shlex
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from evalhub.lib.limits import LARGEST_FILE
from evaluators.name_lists import list_names
from runs.engine.workspace.kept_files import SECONDS, TimeLeft
from runs.engine.workspace.workspace import LocalWorkspace
from runs.sandbox.safe_paths import open_beneath, read_beneath, remove_beneath, write_beneath
from runs.sandbox.safe_walk import entries_beneath

MOST_NAMED = 20
_CONFIGURATIONS = frozenset(("config", "config.worktree"))
_DRIVER = re.compile(r"\b(?:filter|diff|merge)=")
_EXECUTING = re.compile(
    r"core\.(?:hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|attributesfile)"
    r"|(?:instaweb|protocol|includeif|include|hook|sendemail|lfs\.customtransfer)\..*"
    r"|(?:sequence\.editor|web\.browser|imap\.tunnel|init\.templatedir|interactive\.difffilter|diff\.external)"
    r"|credential\.(?:.*\.)?helper|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|uploadpack\.packobjectshook|gc\.recentobjectshook"
    r"|(?:diff|merge|filter|difftool|mergetool|browser|man|guitool|trailer|tar|remote)\..*\."
    r"(?:command|textconv|driver|clean|smudge|process|cmd|path|uploadpack|receivepack|vcs)",
    re.DOTALL,
)
"""Names of settings with a program, a shell line, or a file that may hold such settings (git-config(1))."""
_SWITCHES = re.compile(r"core\.fsmonitor|pager\..*", re.DOTALL)
"""Settings with a program or a boolean."""
_SHELL_LINES = re.compile(r"alias\..*|submodule\..*\.update", re.DOTALL)
"""Settings that name a program only after "!"."""

Entry = tuple[str, str]
"""A setting's full name and its value."""
Place = tuple[Path, str]
"""A folder of the trial and a path beneath it."""


@dataclass
class GitSettings:
    """The settings of a trial's repositories, as they were when its agent began."""

    workspace: LocalWorkspace
    before: dict[Place, bytes | None] = field(default_factory=dict)
    """Contents of configuration files, hooks and attributes; None if it isn't a readable file."""

    @classmethod
    def of(cls, workspace: LocalWorkspace) -> GitSettings:
        """Return the settings as they are now."""
        guard = cls(workspace)
        guard.before = {place: _content(place) for place in guard._places()}
        return guard

    def clean(self, left: TimeLeft) -> list[str]:
        """Remove what executes something and was not there; return it by name.

        When the time is up, all that was added to a file goes: Git isn't asked any more which of it executes something.
        """
        named: list[str] = []
        for place in list(self._places()):
            try:
                named += self._remove_whole(place) if left.is_up else self._clean(place)
            except OSError as error:
                named.append(f"{self._name(place)} (not removed: {error.strerror})")
        return named

    def _clean(self, place: Place) -> list[str]:
        before, now = self.before.get(place), _content(place)
        if now == before and place in self.before:
            return []
        if now is not None and posixpath.basename(place[1]) in _CONFIGURATIONS:
            return self._clean_configuration(place, before)
        if now is not None and posixpath.basename(place[1]) == "attributes":
            return self._clean_attributes(place, before, now)
        _put(place, before)
        return [self._name(place)]

    def _remove_whole(self, place: Place) -> list[str]:
        before = self.before.get(place)
        if _content(place) == before and place in self.before:
            return []
        _put(place, before)
        return [f"{self._name(place)} (whole)"]

    def _places(self) -> Iterator[Place]:
        """Yield the settings files and hooks of every repository of workspace and scratch directory."""
        for root in (self.workspace.path, self.workspace.scratch):
            repositories: set[str] = set()
            files: list[tuple[str, str]] = []
            for path, state in entries_beneath(root):
                folder, name = posixpath.split(path)
                if name in ("HEAD", "objects", "refs", "commondir"):
                    repositories.add(folder)
                elif stat.S_ISDIR(state.st_mode):
                    continue
                elif name in (*_CONFIGURATIONS, "hooks"):
                    files.append((folder, path))
                elif name == "attributes" or (folder.endswith("hooks") and not name.endswith(".sample")):
                    files.append((posixpath.dirname(folder), path))
            yield from ((root, path) for folder, path in files if folder in repositories)

    def _clean_configuration(self, place: Place, before: bytes | None) -> list[str]:
        """Remove the executing settings of a changed configuration file that were not in it before."""
        inside = self.workspace.inside(place[0] / place[1])
        added = self._find_added(inside, before)
        if not added:
            return []
        names = list(dict.fromkeys(name for name, _ in added))
        restored = [each for each in self._entries_of(before) if each[0] in names]
        lines = [f"git config --file {shlex.quote(inside)} --unset-all {shlex.quote(name)}" for name in names]
        lines += [
            f"git config --file {shlex.quote(inside)} --add {shlex.quote(name)} {shlex.quote(value)}"
            for name, value in restored
        ]
        self._git("\n".join(lines))
        if self._find_added(inside, before):
            # Something is in the way, such as a lock file.
            _put(place, before)
        return [f"{self._name(place)} ({', '.join(names[:MOST_NAMED])})"]

    def _find_added(self, inside: str, before: bytes | None) -> list[Entry]:
        added = Counter(filter(_executes, self._entries(inside)))
        return list((added - Counter(self._entries_of(before))).elements()) if added else []

    def _entries_of(self, content: bytes | None) -> list[Entry]:
        """Return the entries of a configuration that the trial's folder no longer has."""
        if not content:
            return []
        name = f"git-config-{secrets.token_hex(8)}"
        write_beneath(self.workspace.scratch, name, content)
        try:
            return self._entries(self.workspace.inside(self.workspace.scratch / name))
        finally:
            remove_beneath(self.workspace.scratch, name)

    def _entries(self, inside: str) -> list[Entry]:
        """Return the entries of a configuration file; none if Git can't read it, and so doesn't follow it."""
        printed = self._git(f"git config --file {shlex.quote(inside)} --no-includes --null --list")
        entries = (entry.partition("\n") for entry in printed.split("\0") if entry)
        return [(name, value) for name, _, value in entries]

    def _git(self, script: str) -> str:
        """Return what Git prints, away from the repositories whose settings it would read."""
        result = self.workspace.run(f'cd "$TMPDIR" || exit\n{script}', timeout_seconds=SECONDS)
        return result.stdout

    def _clean_attributes(self, place: Place, before: bytes | None, now: bytes) -> list[str]:
        """Remove the lines of changed attributes that name a driver and were not in them before."""
        known = set((before or b"").splitlines())
        lines = now.splitlines()
        remaining = [
            line for line in lines if line in known or not _DRIVER.search(line.decode("utf-8", "replace"))
        ]
        if remaining == lines:
            return []
        _put(place, b"".join(line + b"\n" for line in remaining))
        return [self._name(place)]

    def _name(self, place: Place) -> str:
        root, path = place
        return path if root == self.workspace.path else posixpath.join("$LLM_TOOL_TEST_RESULTS_DIR", path)


def warn_of_removed(named: Sequence[str]) -> str:
    """Return a warning of what was removed."""
    return (
        "The agent added Git settings that execute something; removed before gates: "
        f"{list_names(named, MOST_NAMED)}. If they are the task, set 'git_config: keep'."
    )


def _executes(entry: Entry) -> bool:
    name, value = entry
    if _SHELL_LINES.fullmatch(name):
        return value.lstrip().startswith("!")
    if _SWITCHES.fullmatch(name):
        return value.lower() not in ("true", "false", "yes", "no", "on", "off", "1", "0", "")
    return _EXECUTING.fullmatch(name) is not None


def _content(place: Place) -> bytes | None:
    """Return a regular file's content; None for anything else, and for what is too large."""
    try:
        return read_beneath(*place, limit=LARGEST_FILE, links=False)
    except OSError:
        return None


def _put(place: Place, content: bytes | None) -> None:
    """Rewrite a file, or remove it without content."""
    root, path = place
    mode = 0o644
    with suppress(OSError):
        mode = stat.S_IMODE((root / path).lstat().st_mode)
    remove_beneath(root, path)
    if content is None:
        return
    write_beneath(root, path, content)
    descriptor = open_beneath(root, path, os.O_RDONLY, links=False)
    try:
        # Git ignores hooks that aren't executable.
        os.fchmod(descriptor, 0o755 if mode & stat.S_IXUSR else 0o644)
    finally:
        os.close(descriptor)
