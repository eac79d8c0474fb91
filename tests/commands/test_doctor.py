"""`doctor`: what it finds here, and what it says when something is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]


def doctor(
    folder: Path, *words: str, before: tuple[str, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    left = ("DATABASE_URL", "EVALHUB_BROKER_URL", "DJANGO_SETTINGS_MODULE", "OPENAI_API_KEY")
    env = {name: value for name, value in os.environ.items() if name not in left}
    argv = [*before, sys.executable, "manage.py", "doctor", *words]
    return subprocess.run(
        argv,
        cwd=ROOT,
        env={**env, "EVALHUB_DATA": str(folder / "data"), **more},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_it_names_each_part_and_what_to_do(tmp_path: Path) -> None:
    program(tmp_path / "bin", "codex", "echo codex-cli 0.61.0")
    program(tmp_path / "bin", "claude", "exit 3")
    program(tmp_path / "bin", "npx", "exit 0")
    program(tmp_path / "bin", "opencode", "echo 1.18.33")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = doctor(tmp_path, "--json", PATH=path, OPENAI_API_KEY="sk-not-printed")
    document = json.loads(done.stdout)
    found = {}
    for each in document["findings"]:
        found.setdefault(each["part"], []).append((each["state"], each["sentence"], each["advice"]))
    assert (done.returncode, document["ok"]) == (0, True)
    assert found["database"][0][0] == "ok"
    assert found["workers"] == [("warning", "No worker is running.", "'make run' starts one.")]
    assert found["broker"][0][1] == "The embedded broker is not running."
    assert found["keys"] == [("ok", "Set: OPENAI_API_KEY.", "")]
    assert "sk-not-printed" not in done.stdout
    codex, claude, *others = found["agents"]
    # opencode's second row warns that ripgrep is missing.
    names = dict.fromkeys(each[1].split(":")[0].split(" ")[0] for each in others)
    assert {"opencode", "gemini", "qwen", "copilot"} <= {*names}
    assert codex[1] == f"codex: codex-cli 0.61.0, {tmp_path / 'bin' / 'codex'}."
    assert claude[0] == "warning"
    assert "--version' to see why" in claude[2]
    if shutil.which("rg") is None:
        state, sentence, _ = next(each for each in others if "ripgrep" in each[1])
        assert (state, "opencode loads skills with ripgrep" in sentence) == ("warning", True)
    npx, uvx = found["packages"]
    assert npx[1].startswith(
        f"npx: {tmp_path / 'bin' / 'npx'}. An MCP server's packages are fetched once for a run"
    )
    assert uvx[1].startswith("uvx: ")
    absent = [each for part in ("agents", "packages") for each in found[part] if "not installed" in each[1]]
    assert {each[0] for each in absent} <= {"missing"}
    assert {"clock", "sandbox", "disk", "files"} <= found.keys()


WITHOUT_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not installed")
def test_it_says_where_a_trial_can_take_everything_that_the_workers_user_may(tmp_path: Path) -> None:
    enter = ("unshare", "--user", "--map-root-user", "--", "sh", "-c", WITHOUT_NAMESPACES, "sh")
    if subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine allows no user namespaces")
    limited = doctor(tmp_path, "--json", before=enter, EVALHUB_EGRESS="full")
    sentence = "One trial can take all inotify instances and namespaces of the worker's user: there is no bubblewrap."
    assert sentence in [each["sentence"] for each in json.loads(limited.stdout)["findings"]]


def test_a_database_that_is_away_is_a_problem_and_the_rest_goes_on(tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "EVALHUB_BROKER_URL": "redis://127.0.0.1:1/0",
        "EVALHUB_SECRET_KEY": "x" * 60,
    }
    done = doctor(tmp_path, **settings)
    assert done.returncode == 1
    assert "✗ database  It does not answer:" in done.stdout
    assert "✗ broker    The broker does not answer: ConnectionError. Start it" in done.stdout
    assert "disk      " in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_what_is_missing_gets_no_tick(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    printed = doctor(tmp_path, PATH=str(tmp_path / "empty")).stdout
    lines = [line for line in printed.splitlines() if "not installed" in line]
    assert len(lines) == 8, "six agents and two programs that fetch packages"
    assert all(line.startswith("–") for line in lines)
