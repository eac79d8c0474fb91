"""A tool author's suite of six scenarios, as a CI job runs it: in a process of its own, with its own data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, parse

from tests.embedded_data import make_data

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "files" / "ci_jobs"
PAID = "  - {name: paid, provider: litellm, model: openai/gpt-4o-mini, api_key: '${{ AGENT_API_KEY }}'}\n"


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def check_out(folder: Path) -> None:
    """Lay the suite and its targets into a job's folder."""
    shutil.copytree(FILES / "evals", folder / "evals")
    with (folder / "evals" / "targets.yaml").open("a") as targets:
        targets.write(PAID)


class Job:
    """One CI job: a checkout, an empty database, and a job summary."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        check_out(folder)
        make_data(folder / "data")

    def environment(self, **changes: str) -> dict[str, str]:
        """Return the job's variables: nothing of evalhub, GitHub or a provider but its own."""
        foreign = ("EVALHUB_", "DATABASE_", "GITHUB_", "OPENAI_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        return {
            **kept,
            "DJANGO_SETTINGS_MODULE": "evalhub.settings",
            "EVALHUB_DATA": str(self.folder / "data"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "step.md"),
            "BROKEN": "no",
            "SLOW": "0",
            **changes,
        }

    def start(self, *words: str, **changes: str) -> subprocess.Popen[str]:
        """Start a command of evalhub in the job's folder."""
        return subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), *words],
            cwd=self.folder,
            env=self.environment(**changes),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str, **changes: str) -> Ended:
        """Run a command of evalhub in the job's folder."""
        with self.start(*words, **changes) as process:
            out, err = process.communicate(timeout=120)
        return Ended(process.returncode, out, err)

    def run(self, *words: str, target: str = "recorded", trials: int = 3, **changes: str) -> Ended:
        """Run the suite with reports, as the examples of docs/ci.md do."""
        return self.call(*run_words(*words, target=target, trials=trials), **changes)

    @property
    def summary(self) -> str:
        return (self.folder / "step.md").read_text()

    @property
    def junit(self) -> Element:
        """The job's one test suite."""
        suite = parse(self.folder / "junit.xml").find("testsuite")
        assert suite is not None
        return suite


def run_words(*words: str, target: str = "recorded", trials: int = 3) -> list[str]:
    """Return the words of a job's `run_scenarios`."""
    return [
        *("run_scenarios", "evals", "--targets", "evals/targets.yaml", "--target", target, "--now"),
        *("--trials", str(trials), "--summary-file", "-", "--junit-file", "junit.xml"),
        *words,
    ]
