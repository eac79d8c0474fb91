"""Decide which paths targets may name: those that the operator lists, never evalhub's own data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runs.errors import ProviderError
from runs.sandbox.safe_paths import create_beneath, make_folder_beneath, read_beneath


class Use(StrEnum):
    """Verbs for sentences."""

    READ = "read"
    WORK = "work in"
    WRITE = "write to"
    RUN = "run"
    SHOW = "show its commands"


SYSTEM_PROGRAMS = (Path("/usr"), Path("/bin"), Path("/sbin"))
REMEDY = "Give a path beneath one that EVALHUB_TARGET_ROOTS lists, or list it there"


class PathRefused(ProviderError):
    """A target may not use a path; the message is a sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="configuration")


@dataclass(frozen=True)
class AllowedPath:
    """An allowed path: its root and the path beneath, with links resolved."""

    root: Path
    beneath: str

    @property
    def path(self) -> Path:
        """Return the whole path."""
        return self.root / self.beneath

    def read(self, *, limit: int) -> bytes:
        """Return a file's content. Raises `OSError`."""
        return read_beneath(self.root, self.beneath, limit=limit, links=False)

    def create(self, name: str) -> int:
        """Create a file in this folder, and the folder if missing; return the descriptor. Raises `OSError`."""
        if self.beneath != ".":
            make_folder_beneath(self.root, self.beneath)
        return create_beneath(self.root, f"{self.beneath}/{name}")


@dataclass(frozen=True)
class TargetRoots:
    """The folders in which targets may name paths. Default: only system programs."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = SYSTEM_PROGRAMS
    never: tuple[Path, ...] = ()
    """evalhub's own folders and files, always refused."""

    @classmethod
    def of(cls, words: Iterable[str], *, path: str = "", never: Iterable[Path] = ()) -> TargetRoots:
        """Parse EVALHUB_TARGET_ROOTS and a PATH. Raises `ValueError` with a sentence."""
        readable, writable = [], []
        for word in words:
            name = word.removesuffix(":rw")
            if not Path(name).is_absolute():
                raise ValueError(
                    f"EVALHUB_TARGET_ROOTS: '{word}' is not an absolute path. Write /srv/recordings, "
                    "or /srv/logs:rw where targets may write."
                )
            readable.append(_real(Path(name)))
            writable += [_real(Path(name))] if word.endswith(":rw") else []
        programs = [Path(each) for each in path.split(os.pathsep) if each.startswith("/")]
        return cls(tuple(readable), tuple(writable), (*SYSTEM_PROGRAMS, *programs), tuple(map(_real, never)))

    def place(self, path: str, use: Use, *, base: str = "") -> AllowedPath:
        """Resolve a path and its links. Relative paths start from `base`, the targets file's folder, and stay beneath it. Paths beneath `base`
        may also be read by absolute path.

        Raises `PathRefused`.
        """
        asked = Path(path).expanduser() if use is Use.RUN else Path(path)
        real = _real(asked)
        if not asked.is_absolute() or (base and real.is_relative_to(_real(Path(base)))):
            return self._beneath_base(str(asked), use, base)
        self._refuse_own(path, real, use)
        if use is Use.SHOW and _real(Path.home()).is_relative_to(real):
            raise PathRefused(
                f"'{path}' is the worker's home or contains it, with its keys. Move the program to a folder of its own."
            )
        for root in self._roots(use):
            if real.is_relative_to(root):
                return AllowedPath(root, str(real.relative_to(root)))
        if use is Use.RUN and Path(os.path.normpath(asked)).parent in self.programs:
            # A link on PATH, such as those of version managers.
            return AllowedPath(real.parent, real.name)
        raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")

    def may_write(self, path: Path) -> bool:
        """Return whether commands may write to their working folder."""
        return any(_real(path).is_relative_to(root) for root in self.writable)

    def _beneath_base(self, path: str, use: Use, base: str) -> AllowedPath:
        if not base:
            raise PathRefused(f"'{path}' has no starting folder. Give an absolute path.")
        root = _real(Path(base))
        real = _real(root / path)
        if not real.is_relative_to(root):
            raise PathRefused(
                f"'{path}' leads outside its targets file's folder. Use a path inside it, or an absolute one."
            )
        self._refuse_own(path, real, use)
        if use is Use.WRITE and not self.may_write(real):
            raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")
        return AllowedPath(root, str(real.relative_to(root)))

    def _refuse_own(self, path: str, real: Path, use: Use) -> None:
        shown = use in (Use.WORK, Use.WRITE, Use.SHOW)
        for private in self.never:
            if real.is_relative_to(private) or (shown and private.is_relative_to(real)):
                raise PathRefused(
                    f"'{path}' belongs to evalhub's own data; targets can't {use} it. Use another path."
                )

    def _roots(self, use: Use) -> tuple[Path, ...]:
        if use is Use.WRITE:
            return self.writable
        return (*self.readable, *map(_real, self.programs)) if use is Use.RUN else self.readable


def refuse_climbing(path: str) -> None:
    """Raise `PathRefused` if a relative path leads outside its starting folder."""
    climbs = os.path.normpath(path)
    if climbs == ".." or climbs.startswith("../"):
        raise PathRefused(f"'{path}' leads outside its starting folder. Use a path inside it.")


def _remedy(use: Use) -> str:
    return f"{REMEDY} with ':rw'" if use is Use.WRITE else REMEDY


def _real(path: Path) -> Path:
    """Return a path with links resolved; circular links stay and are never opened."""
    return Path(os.path.realpath(path))
