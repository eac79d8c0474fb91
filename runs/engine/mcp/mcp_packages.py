"""Packages that the command of an MCP server fetches, such as `npx -y PACKAGE` and `uvx PACKAGE`.

They are fetched once for a run and machine, when the server's tools are listed before the run. Each server of a trial gets a
copy in its own folder and works offline, so no trial needs the network for them or can change those of the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from evaluators.tool_use.tool import Tool
from runs.errors import ProviderError
from runs.models import Run
from runs.models.run import OPEN
from runs.sandbox.safe_walk import MOST_ENTRIES, files_beneath, remove_tree
from scenarios.storing import content_hash

FOLDER = "packages"
"""Name of the packages' folder beside the workspace; its path inside the sandbox is the same for every server."""
LAUNCHERS = {"npx": "apt-get install npm", "uvx": "pip install uv"}
"""Programs that fetch packages, with a command that installs each."""
_CACHES = {
    "npm_config_cache": "npm",
    "UV_CACHE_DIR": "uv",
    "UV_PYTHON_INSTALL_DIR": "uv-python",
    "UV_TOOL_DIR": "uv-tools",
}
_OFFLINE = {"npm_config_offline": "true", "UV_OFFLINE": "1"}


def cache_variables(inside: str, *, offline: bool) -> dict[str, str]:
    """Return the variables with which programs keep packages in a folder, and with `offline` fetch no others."""
    return {name: f"{inside}/{own}" for name, own in _CACHES.items()} | (_OFFLINE if offline else {})


def stored_packages(run: int, tool: Tool) -> Path:
    """Return where the packages of a run's server are stored on this machine; missing until they were fetched."""
    tool_hash = content_hash(tool.model_dump(mode="json"))[:16]
    return Path(settings.WORK_DIR) / FOLDER / f"{run}-{tool_hash}"


@contextmanager
def only_once(stored: Path) -> Iterator[bool]:
    """Hold the lock of a run's packages; yield whether they are still to be fetched."""
    stored.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(stored.with_name(f"{stored.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not stored.is_dir()
    finally:
        os.close(lock)


def store_packages(fetched: Path, stored: Path) -> int:
    """Move fetched packages to where trials copy them from; return their bytes, 0 if there are none."""
    _remove_old(stored.parent)
    stored.parent.mkdir(parents=True, exist_ok=True)
    remove_tree(stored)
    if fetched.is_dir() and not fetched.is_symlink():
        shutil.move(fetched, stored)
    else:
        stored.mkdir()
    return folder_bytes(stored)


def folder_bytes(folder: Path) -> int:
    """Return the bytes of the files in a folder."""
    return (
        sum(state.st_size for _, state in files_beneath(folder, most=MOST_ENTRIES)) if folder.is_dir() else 0
    )


def copy_packages(stored: Path, folder: Path) -> bool:
    """Copy stored packages into a server's folder; return whether there are any. Raises `ProviderError` (kind `setup`)."""
    if not stored.is_dir() or not any(stored.iterdir()):
        return False
    try:
        shutil.copytree(stored, folder / FOLDER, symlinks=True)
    except OSError as error:
        why = str(error)[:300]
        raise ProviderError(f"The packages of the MCP server can't be copied: {why}", kind="setup") from error
    return True


def _remove_old(root: Path) -> None:
    """Remove the packages of runs that are over."""
    folders = [path for path in root.glob("*-*") if path.name.partition("-")[0].isdigit()]
    keys = {int(path.name.partition("-")[0]) for path in folders}
    running = set(Run.objects.filter(pk__in=keys, state__in=OPEN).values_list("pk", flat=True))
    for path in folders:
        if int(path.name.partition("-")[0]) in running:
            continue
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)
