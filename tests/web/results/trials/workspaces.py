"""Trials whose workspaces began and ended with files of one's choice."""

from __future__ import annotations

from scenarios.formats.parsed import FixtureFile
from scenarios.models import Guidance
from scenarios.storing import keep_fixture
from tests.builders import make_run, make_suite, make_trial
from tests.trial_parts import make_workspace
from tests.web.results.trials.pages import address
from tests.web.screen import main_of

START = {"notes.txt": b"one\ntwo\nthree\n", "same.txt": b"stays\n", "old.txt": b"goes\n"}


def trial_of(project, *, start=START, kept=None, guidance=None, detail=None, **content):
    """Return a trial whose workspace started with some files and ended with others."""
    version = make_suite(project, ("export",), fixture="box" if start else None, **content)
    scenario_version = version.scenario_versions.get()
    if start:
        files = tuple(FixtureFile(path, content) for path, content in start.items())
        scenario_version.fixture = keep_fixture(project, files)
        scenario_version.save()
    if guidance:
        documents = [{"path": path, "content": text} for path, text in guidance.items()]
        guidance = Guidance.objects.create(suite=version.suite, number=1, sha256="a" * 64, files=documents)
    trial = make_trial(make_run(version, guidance=guidance or None), **({"detail": detail} if detail else {}))
    if kept is not None:
        make_workspace(trial, kept)
    return trial


def page(client, trial):
    return main_of(client.get(address(trial, "?part=files")))


def changes(client, trial):
    found = client.get(address(trial, "?part=files")).context["files"]
    return {change.path: change for change in found.files}
