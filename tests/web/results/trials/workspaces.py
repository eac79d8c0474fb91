"""Trials whose workspaces began and ended with files of one's choice."""

from __future__ import annotations

from typing import NamedTuple

from scenarios.formats.parsed import FixtureFile
from scenarios.models import Guidance
from scenarios.storing import store_fixture
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
        scenario_version.fixture = store_fixture(project, files)
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


class ShownChange(NamedTuple):
    """A changed file as its section of the page shows it."""

    change: str
    sizes: str
    note: str
    is_compared: bool


def changes(client, trial):
    """Return the changed files that the page lists, in its order, by their paths."""
    return {each.name: _read_change(each) for each in page(client, trial).all("section.changed-file")}


def _read_change(section):
    (header,), notes = section.all("header"), section.all("section > p.muted")
    (sizes,) = header.all(".muted")
    letter, change = header.text.split()[:2]
    assert letter == {"added": "A", "removed": "D", "changed": "M"}[change]
    return ShownChange(change, sizes.text, " ".join(each.text for each in notes), bool(section.all("table")))
