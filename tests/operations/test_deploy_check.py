"""The documented settings of a server leave `check --deploy` nothing to warn of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docker.stack import compose

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/operations.md").read_text()
SECRETS = {
    "database_url": "postgresql://evalhub:password@127.0.0.1:1/evalhub",
    "secret_key": "".join(chr(ord("!") + n) for n in range(64)),
    "metrics_token": "token",
    "broker_url": "redis://:password@127.0.0.1:1/0",
}


def written() -> dict[str, str]:
    """Return the settings that docs/operations.md gives for a server without containers."""
    (block,) = re.findall(r"```ini\n(DATABASE_URL.*?)```", PAGE, re.DOTALL)
    return dict(line.split("=", 1) for line in block.splitlines())


def composed() -> dict[str, str]:
    return {**compose()["services"]["web"]["environment"], "EVALHUB_HOSTS": "evals.example.org"}


def checked(given: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the check with these settings; secrets and data lie in a folder of the test."""
    for name, value in SECRETS.items():
        (folder / name).write_text(value)
    files = {name: str(folder / Path(path).name) for name, path in given.items() if name.endswith("_FILE")}
    env = {**given, **files, "EVALHUB_DATA": str(folder / "data"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("given", [written, composed])
def test_the_documented_server_has_no_warning(given, tmp_path):
    done = checked(given(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("System check identified no issues")


def test_a_server_without_tls_is_warned_of(tmp_path):
    given = {name: value for name, value in written().items() if "SSL" not in name and "HSTS" not in name}
    done = checked(given, tmp_path)
    assert done.returncode == 1
    assert {"security.W004", "security.W008"} <= set(re.findall(r"security\.W\d+", done.stderr))
