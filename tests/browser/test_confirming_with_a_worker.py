"""A regression confirmed by button on a whole evalhub: pages, database, broker and a worker as real processes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import follow
from tests.browser.whole_evalhub import Served, serve_evalhub
from tests.worker.test_up import ROOT

SCENARIO = """name: {name}
description: Leaves a file.
task:
  prompt: Leave out.txt.
evaluation:
  gates:
    - type: file_exists
      path: out.txt
"""
TARGETS = "targets:\n  - {{name: m, provider: cli, command_template: 'touch {{WORKSPACE}}/{file}'}}\n"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Served]:
    """Start evalhub with a regression in it."""
    with serve_evalhub(tmp_path / "data") as served:
        suite = tmp_path / "files"
        suite.mkdir()
        for name in ("one", "two"):
            (suite / f"{name}.yaml").write_text(SCENARIO.format(name=name))
        for file in ("out.txt", "other.txt"):
            targets = tmp_path / f"{file}.yaml"
            targets.write_text(TARGETS.format(file=file))
            given = ["run_scenarios", suite, "--targets", targets, "--target", "m", "--trials", "6", "--now"]
            subprocess.run(
                [sys.executable, "manage.py", *map(str, given)],
                cwd=ROOT,
                env=served.environ,
                capture_output=True,
            )
        yield served


@pytest.mark.slow
def test_a_worker_confirms_and_the_page_follows(serving: Served, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(30_000)
    serving.open(page)
    follow(page.get_by_role("link", name=re.compile("^Regressions")))
    follow(page.get_by_role("link", name="Confirm…"))
    follow(page.get_by_role("button", name=re.compile(r"Run \d+ trials")))
    evidence = page.locator(".evidence")
    expect(evidence).to_contain_text(re.compile(r"\d+ of \d+ trials"))
    expect(evidence).to_contain_text("Pass rate −100 points", timeout=60_000)
    expect(evidence.locator(".badge").first).to_have_text("confirmed")
    page.context.close()
