"""Run evalhub as an ordinary user: root reads folders that nobody may read, so faults with permissions don't show.

Root becomes the user 65534. That user may not read what root installed for itself: then the system's Python runs a
readable copy of the code.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.requirements import missing

ROOT = Path(__file__).parents[1]
UID = 65534
_CODE = ("evalhub", "evaluators", "runs", "scenarios", "static", "templates", "manage.py", "CHANGELOG.md")
_MAJOR_MINOR = f"python{sys.version_info.major}.{sys.version_info.minor}"


@contextmanager
def ordinary_folder() -> Iterator[Path]:
    """Give an empty folder that the ordinary user reaches."""
    with tempfile.TemporaryDirectory(prefix="evalhub-ordinary-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def run_as_ordinary_user(
    folder: Path, suite: Mapping[str, str], *words: str, timeout: float = 300
) -> dict[str, Any]:
    """Return the document that `run_scenarios` prints for a suite's files in a new folder."""
    place = folder / "suite"
    for path, content in suite.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
    command = [
        *_command(folder),
        "run_scenarios",
        ".",
        "--now",
        "--json",
        "--targets",
        "targets.yaml",
        *words,
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "EVALHUB_DATA": str(folder / "data"),
        "EVALHUB_SANDBOX": "require",
    }
    ended = subprocess.run(
        command,
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **_identity(folder),
    )
    assert ended.stdout, ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def _identity(folder: Path) -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UID, UID, follow_symlinks=False)
    return {"user": UID, "group": UID, "extra_groups": []}


def _command(folder: Path) -> list[str]:
    """Return the words that start `manage.py`, for a user who can read all of it."""
    if os.geteuid() != 0:
        return [sys.executable, str(ROOT / "manage.py")]
    code = ROOT
    if not _can_read(ROOT / "manage.py"):
        code = folder / "code"
        code.mkdir()
        for name in _CODE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, code / name)
    return [str(_python(folder)), str(code / "manage.py")]


def _python(folder: Path) -> Path:
    """Return a Python with this one's packages."""
    base = Path(sys.base_prefix) / "bin" / _MAJOR_MINOR
    chosen = next((each for each in (base, Path("/usr/bin") / _MAJOR_MINOR) if _can_read(each)), None)
    if chosen is None:
        missing("sandbox", f"No {_MAJOR_MINOR} that an ordinary user can run. Install it in /usr/bin.")
    packages = Path(
        sysconfig.get_path("purelib") if sys.prefix != sys.base_prefix else site.getsitepackages()[0]
    )
    library = folder / "python/lib" / _MAJOR_MINOR
    library.mkdir(parents=True)
    if _can_read(packages / "django/__init__.py"):
        (library / "site-packages").symlink_to(packages.resolve())
    else:
        shutil.copytree(packages, library / "site-packages")
    (folder / "python/bin").mkdir()
    (folder / "python/pyvenv.cfg").write_text(
        f"home = {chosen.parent}\ninclude-system-site-packages = false\n"
    )
    python = folder / "python/bin/python"
    python.symlink_to(chosen)
    return python


def _can_read(path: Path) -> bool:
    return not subprocess.run(
        ["/usr/bin/test", "-r", path], user=UID, group=UID, extra_groups=[], check=False
    ).returncode
