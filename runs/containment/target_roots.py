"""Which paths of a worker's machine targets may name: what the operator lists, and never evalhub's own data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runs.containment.beneath import create_beneath, make_folder_beneath, read_beneath
from runs.containment.path_use import Use
from runs.errors import ProviderError

SYSTEM_PROGRAMS = (Path("/usr"), Path("/bin"), Path("/sbin"))
REMEDY = "Give a path beneath one that EVALHUB_TARGET_ROOTS lists, or list it there"


class PathRefused(ProviderError):
    """A path may not be used by a target; the message is a sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="configuration")


@dataclass(frozen=True)
class Place:
    """A path that may be used, as the root that allows it and what lies beneath; no link is left in either."""

    root: Path
    beneath: str

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.root / self.beneath

    def read(self, *, limit: int) -> bytes:
        """Return a file's content. Raises `OSError`."""
        return read_beneath(self.root, self.beneath, limit=limit, links=False)

    def create(self, name: str) -> int:
        """Return a descriptor of a new file in this folder, which is made where it is not there. Raises `OSError`."""
        if self.beneath != ".":
            make_folder_beneath(self.root, self.beneath)
        return create_beneath(self.root, f"{self.beneath}/{name}")


@dataclass(frozen=True)
class TargetRoots:
    """The folders that targets may name paths in. As they are made, nothing but programs of the system."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = SYSTEM_PROGRAMS
    never: tuple[Path, ...] = ()
    """Folders and files of evalhub itself: not to be named, and in no folder that is."""

    @classmethod
    def of(cls, words: Iterable[str], *, path: str = "", never: Iterable[Path] = ()) -> TargetRoots:
        """Return what the words of EVALHUB_TARGET_ROOTS and a PATH allow. Raises `ValueError` with a sentence."""
        readable, writable = [], []
        for word in words:
            name = word.removesuffix(":rw")
            if not Path(name).is_absolute():
                raise ValueError(
                    f"EVALHUB_TARGET_ROOTS: '{word}' is no absolute path. Write /srv/recordings, "
                    "or /srv/logs:rw where targets may write."
                )
            readable.append(_real(Path(name)))
            writable += [_real(Path(name))] if word.endswith(":rw") else []
        programs = [Path(each) for each in path.split(os.pathsep) if each.startswith("/")]
        return cls(tuple(readable), tuple(writable), (*SYSTEM_PROGRAMS, *programs), tuple(map(_real, never)))

    def place(self, path: str, use: Use, *, base: str = "") -> Place:
        """Return where a path leads, links resolved. Relative ones start from `base` and stay beneath it.

        What lies beneath `base`, the folder of a targets file on this machine, may be read by its absolute path, too.

        Raises `PathRefused`.
        """
        given = Path(path).expanduser() if use is Use.RUN else Path(path)
        real = _real(given)
        if not given.is_absolute() or (base and real.is_relative_to(_real(Path(base)))):
            return self._beneath_base(str(given), use, base)
        self._refuse_own(path, real, use)
        for root in self._roots(use):
            if real.is_relative_to(root):
                return Place(root, str(real.relative_to(root)))
        if use is Use.RUN and Path(os.path.normpath(given)).parent in self.programs:
            # A link that stands on PATH, such as those of version managers.
            return Place(real.parent, real.name)
        raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")

    def may_write(self, path: Path) -> bool:
        """Whether commands that work in a folder may write there, too."""
        return any(_real(path).is_relative_to(root) for root in self.writable)

    def _beneath_base(self, path: str, use: Use, base: str) -> Place:
        if not base:
            raise PathRefused(f"'{path}' has no folder to start from. Give an absolute path.")
        root = _real(Path(base))
        real = _real(root / path)
        if not real.is_relative_to(root):
            raise PathRefused(
                f"'{path}' leads out of the folder of its targets file. Give a path within, or an absolute one."
            )
        self._refuse_own(path, real, use)
        if use is Use.WRITE and not self.may_write(real):
            raise PathRefused(f"A target may not {use} '{path}' on this worker. {_remedy(use)}.")
        return Place(root, str(real.relative_to(root)))

    def _refuse_own(self, path: str, real: Path, use: Use) -> None:
        shown = use in (Use.WORK, Use.WRITE)
        for own in self.never:
            if real.is_relative_to(own) or (shown and own.is_relative_to(real)):
                raise PathRefused(
                    f"'{path}' is a path of evalhub's own data, which no target may {use}. Give another."
                )

    def _roots(self, use: Use) -> tuple[Path, ...]:
        if use is Use.WRITE:
            return self.writable
        return (*self.readable, *map(_real, self.programs)) if use is Use.RUN else self.readable


def refuse_climbing(path: str) -> None:
    """Raise `PathRefused` where a relative path leads out of the workspace, or the folder, that it starts from."""
    climbs = os.path.normpath(path)
    if climbs == ".." or climbs.startswith("../"):
        raise PathRefused(f"'{path}' leads out of the folder that it starts from. Give a path within.")


def _remedy(use: Use) -> str:
    return f"{REMEDY} with ':rw'" if use is Use.WRITE else REMEDY


def _real(path: Path) -> Path:
    """Return a path without links; a circle of them stays as it is and is not opened."""
    return Path(os.path.realpath(path))
