"""Packages that a server's command fetches, from a registry on loopback."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.test import Client

from runs.engine import run_here
from runs.engine.mcp.mcp_packages import FOLDER
from runs.models import Run, Trial
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from tests.builders import make_member, make_project
from tests.runs.carrying import launch, shell_target
from tests.runs.servers import Reply, serving
from tests.static_files import plain_static_files  # noqa: F401  # a fixture
from tests.web.screen import parse

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.one_database]
HERE = Path(__file__).parent
# What npx does: fetch into the cache unless it is there, refuse to if offline, and write into the cache, too.
LAUNCHER = """
import os, pathlib, sys, urllib.request
cache = pathlib.Path(os.environ["npm_config_cache"])
package, offline = cache / "package", os.environ.get("npm_config_offline")
if not package.exists():
    if offline:
        sys.exit("ENOTCACHED")
    cache.mkdir(parents=True)
    package.write_bytes(urllib.request.urlopen(sys.argv[1]).read())
pathlib.Path("seen.txt").open("a").write(f"{bool(offline)} {package.read_text()}\\n")
if offline:
    package.write_text(package.read_text() + " used")
os.execv(sys.executable, [sys.executable, "notes_server.py"])
"""
SCENARIO = """
name: notes
template_folder: box
target:
  mcp: {{name: notes, command: {python} launch.py {url}}}
  files: [notes_server.py, launch.py]
task:
  prompt: |
    ["search", {{"query": "milk"}}]
evaluation:
  gates:
    - {{type: mcp_called, tool: search}}
    - {{type: file_matches, path: seen.txt, pattern: '\\ATrue "a package"\\n'}}
"""


def finished(url: str) -> tuple[Run, Client]:
    """Return a run of three trials, one after the other."""
    project = make_project()
    shell_target(project, command_template=f"{sys.executable} agent.py {{PROMPT}}")
    files = {"notes.yaml": SCENARIO.format(python=sys.executable, url=url).encode()}
    for name in ("notes_server.py", "agent.py"):
        files[f"templates/box/{name}"] = (HERE / name).read_bytes()
    files["templates/box/launch.py"] = LAUNCHER.encode()
    (imported,) = import_files(Bundle("notes", files), project=project, by=None)
    run = launch(imported.version, targets=["shell"], trials=3, concurrency=1).runs.get()
    run_here.run_here(run.launch)
    client = Client()
    client.force_login(make_member(project, "admin"))
    return Run.objects.get(pk=run.pk), client


@pytest.mark.usefixtures("plain_static_files")
def test_they_are_fetched_once_and_no_trial_changes_those_of_the_next():
    with serving(Reply("a package")) as server:
        run, client = finished(server.url)
    trials = Trial.objects.filter(run=run)
    assert [(each.error, each.outcome) for each in trials] == [("", "pass")] * 3, [
        each.scores for each in trials
    ]
    assert len(server.requests) == 1
    (size,) = run.options["packages"].values()
    assert size == len('"a package"')
    page = parse(client.get(f"/p/tools/runs/{run.pk}/tools/"))
    assert "fetched once before the run; trials get copies" in page.text


def test_those_of_runs_that_are_over_are_removed(settings):
    with serving(Reply("a package")) as server:
        run, _ = finished(server.url)
        stored = {path.name.partition("-")[0] for path in (settings.WORK_DIR / FOLDER).iterdir()}
        assert stored == {str(run.pk)}
        again = launch(run.suite_version, targets=["shell"]).runs.get()
        run_here.run_here(again.launch)
    stored = {path.name.partition("-")[0] for path in (settings.WORK_DIR / FOLDER).iterdir()}
    assert stored == {str(again.pk)} and len(server.requests) == 2
