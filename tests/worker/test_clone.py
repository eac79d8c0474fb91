"""What somebody sees who clones evalhub and types one command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalhub.web.example_agent import free_port
from tests import tour
from tests.worker.downloads import broken_downloads
from tests.worker.stand import ROOT
from tests.worker.test_up import environment


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.starts_first
def test_a_clone_runs_its_examples_and_every_download_works(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    env = {**environment(tmp_path / "data"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    del env["EVALHUB_DATA"]
    # The run needs a tenth of the installed modules, and to compile all of them takes longer than all the rest.
    env["UV_COMPILE_BYTECODE"] = "0"
    done = subprocess.run(
        ["make", "run", "ONCE=1", f"PORT={free_port()}"],
        cwd=clone,
        env=env,
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All examples had the expected outcomes." in done.stdout
    assert not subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True
    ).stdout, "what it makes is ignored"
    # To run the examples takes longer than all the rest, so the walk is over the clone's results.
    with tour.evalhub(clone / "var", "--no-examples") as link:
        wrong, number = broken_downloads(link)
    assert not wrong, "\n".join(wrong)
    assert number > 20
