"""Commands on a full disk end with a sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalhub.web.example_agent import free_port
from tests.requirements import missing
from tests.worker.stand import ROOT
from tests.worker.test_up import environment

pytestmark = pytest.mark.slow

SCRIPT = """
set -e
mount -t tmpfs -o size=120m tmpfs "$1"
"$2" manage.py migrate --verbosity 0
head -c 200000000 /dev/zero > "$1/filler" || true
shift 2
exec "$@"
"""


def on_a_full_disk(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of an evalhub that was used before its disk became full."""
    data.mkdir()
    namespaces = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*namespaces, "true"], check=False, capture_output=True).returncode:
        missing("sandbox", "User namespaces are forbidden here.")
    return subprocess.run(
        [
            *namespaces,
            "sh",
            "-c",
            SCRIPT,
            "sh",
            str(data),
            sys.executable,
            sys.executable,
            "manage.py",
            *words,
        ],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_up_says_that_the_disk_is_full(tmp_path: Path) -> None:
    ended = on_a_full_disk(tmp_path / "data", "up", "--no-examples", "--port", str(free_port()))
    assert ended.returncode == 2
    assert f"The disk of {tmp_path / 'data'} is full or failing. Free some space there" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_a_command_says_so_too(tmp_path: Path) -> None:
    ended = on_a_full_disk(tmp_path / "data", "search", "word", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["id"]) == (2, "disk/full")
