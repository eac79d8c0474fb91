"""A regression confirmed by button on a whole evalhub: pages, database, broker and a worker as real processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from evalhub.web.example_agent import free_port
from tests.worker.test_up import NOT_OURS, ROOT

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
def serving(tmp_path: Path) -> Iterator[str]:
    """Start evalhub with a regression in it; return its sign-in link."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
    environ |= {"EVALHUB_DATA": str(tmp_path / "data"), "EVALHUB_SANDBOX": "prefer"}
    words = [sys.executable, "manage.py", "up", "--no-examples", "--port", str(free_port())]
    process = subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http\S+/sign-in/\S+", line)))
        suite = tmp_path / "files"
        suite.mkdir()
        for name in ("one", "two"):
            (suite / f"{name}.yaml").write_text(SCENARIO.format(name=name))
        for file in ("out.txt", "other.txt"):
            targets = tmp_path / f"{file}.yaml"
            targets.write_text(TARGETS.format(file=file))
            given = ["run_scenarios", suite, "--targets", targets, "--target", "m", "--trials", "6", "--now"]
            subprocess.run(
                [sys.executable, "manage.py", *map(str, given)], cwd=ROOT, env=environ, capture_output=True
            )
        yield link
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
def test_a_worker_confirms_and_the_page_follows(serving: str, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.set_default_timeout(30_000)
    page.goto(serving)
    if (button := page.get_by_role("button", name=re.compile("sign in", re.IGNORECASE))).count():
        button.first.click()
    page.get_by_role("link", name=re.compile("^Regressions")).click()
    page.get_by_role("link", name="Confirm…").click()
    page.get_by_role("button", name=re.compile(r"Run \d+ trials")).click()
    evidence = page.locator(".evidence")
    expect(evidence).to_contain_text("confirming")
    expect(evidence).to_contain_text("Pass rate 100 % → 0 %", timeout=60_000)
    expect(evidence.locator(".badge").first).to_have_text("confirmed")
    page.context.close()
