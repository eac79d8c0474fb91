"""Paths in targets: what an admin of one project may name on the workers, when it is saved and when it is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from evalhub.teams.models import Project
from runs.errors import ProviderError
from runs.models import Target
from runs.sandbox.process import run_process
from runs.sandbox.sandbox import Level
from runs.sandbox.target_roots import PathRefused, TargetRoots, Use
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import resolve_target
from runs.targets.edits import rewrite
from runs.targets.import_targets import import_targets
from scenarios.formats.parsed import ScenarioFileError
from tests.builders import make_project
from tests.runs.containments import containment as at_level
from tests.runs.targets.providers.agents import agent, invocation

pytestmark = pytest.mark.one_database


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Return a folder with two listed ones, `read` and `write`, and evalhub's own `listed/data`."""
    for name in ("read", "write", "listed/data", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "read/a.txt").write_text("recorded")
    (tmp_path / "listed/data/secret_key").write_text("secret")
    (tmp_path / "elsewhere/b.txt").write_text("other")
    return tmp_path


def roots(world: Path) -> TargetRoots:
    words = [f"{world}/read", f"{world}/write:rw", f"{world}/listed"]
    return TargetRoots.of(words, path="/usr/bin", never=[world / "listed/data"])


@pytest.mark.parametrize(
    ("path", "use"),
    [
        ("read/a.txt", Use.READ),
        ("read", Use.WORK),
        ("write", Use.WORK),
        ("write/logs", Use.WRITE),
        ("read/tool", Use.RUN),
    ],
)
def test_paths_beneath_what_is_listed_are_allowed(world, path, use):
    assert roots(world).place(f"{world}/{path}", use).path == world / path


@pytest.mark.parametrize(
    ("path", "use", "message"),
    [
        ("elsewhere/b.txt", Use.READ, "may not read"),
        ("read", Use.WRITE, "EVALHUB_TARGET_ROOTS lists, or list it there with ':rw'"),
        ("read/../elsewhere/b.txt", Use.READ, "may not read"),
        ("reading", Use.READ, "may not read"),
        ("listed/data/secret_key", Use.READ, "evalhub's own data"),
        ("listed/data", Use.WORK, "evalhub's own data"),
        ("listed", Use.WORK, "evalhub's own data"),
        ("elsewhere/tool", Use.RUN, "may not run"),
        ("listed/data/tool", Use.RUN, "evalhub's own data"),
    ],
)
def test_other_paths_are_refused(world, path, use, message):
    with pytest.raises(PathRefused, match=message):
        roots(world).place(f"{world}/{path}", use)


@pytest.mark.parametrize("target", ["elsewhere/b.txt", "listed/data/secret_key"])
def test_links_are_resolved_before_they_are_judged(world, target):
    (world / "read/link").symlink_to(world / target)
    with pytest.raises(PathRefused):
        roots(world).place(f"{world}/read/link", Use.READ)


def test_a_link_that_changes_after_the_check_is_not_followed(world):
    place = roots(world).place(f"{world}/read/a.txt", Use.READ)
    (world / "read/a.txt").unlink()
    (world / "read/a.txt").symlink_to("../elsewhere/b.txt")
    with pytest.raises(OSError, match="symbolic links"):
        place.read(limit=99)


def test_relative_paths_stay_beneath_the_folder_of_their_file(world):
    base = str(world / "read")
    assert roots(world).place("a.txt", Use.READ, base=base).read(limit=99) == b"recorded"
    for path in ("../elsewhere/b.txt", "../read-not/x", f"{world}/elsewhere/b.txt"):
        with pytest.raises(PathRefused):
            roots(world).place(path, Use.READ, base=base)
    with pytest.raises(PathRefused, match="':rw'"):
        roots(world).place("logs", Use.WRITE, base=base)
    with pytest.raises(PathRefused, match="own data"):
        roots(world).place("data/secret_key", Use.READ, base=str(world / "listed"))
    with pytest.raises(PathRefused, match="no starting folder"):
        roots(world).place("logs", Use.WRITE)


def test_programs_on_path_need_no_entry(world):
    (world / "bin").mkdir()
    (world / "bin/tool").symlink_to(world / "elsewhere/b.txt")
    bare = TargetRoots.of([], path=f"/usr/bin:{world}/bin", never=[world / "listed/data"])
    assert bare.place("/bin/sh", Use.RUN)
    assert bare.place(f"{world}/bin/tool", Use.RUN).path == world / "elsewhere/b.txt"
    for use in (Use.READ, Use.WORK, Use.WRITE):
        with pytest.raises(PathRefused):
            bare.place("/usr/bin", use)


def test_a_relative_root_is_reported():
    with pytest.raises(ValueError, match="'recordings' is not an absolute path"):
        TargetRoots.of(["recordings"])


FIELDS: list[dict[str, Any]] = [
    {"provider": "replay", "path": "{}"},
    {"provider": "replay", "path": {"one": "{}"}},
    {"provider": "cli", "command_template": "true", "cwd": "{}"},
    {"provider": "cli", "command_template": "true", "healthcheck": {"type": "command", "command_template": "true", "cwd": "{}"}},
    {"provider": "codex", "executable": "{}"},
    {"provider": "codex", "cwd": "{}"},
    {"provider": "codex", "log_dir": "{}"},
    {"provider": "claude_code", "executable": "{}"},
    {"provider": "opencode", "executable": "{}"},
    {"provider": "vscode", "vscode_cmd": "{}"},
    {"provider": "vscode", "workspace_template": "{}"},
    {"provider": "vscode", "subagent_root": "{}"},
]  # fmt: skip


def filled(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: filled(each, path) for key, each in value.items()}
    return value.replace("{}", path)


def yaml(fields: dict[str, Any]) -> bytes:
    import json

    return f"targets:\n  - name: t\n{''.join(f'    {key}: {json.dumps(each)}{chr(10)}' for key, each in fields.items())}".encode()


@pytest.fixture
def team(settings: Any, world: Path) -> Project:
    """Return a project of a server whose operator lists nothing."""
    settings.TARGET_ROOTS = []
    containment.cache_clear()
    yield make_project("default")
    containment.cache_clear()


@pytest.mark.django_db
@pytest.mark.parametrize("fields", FIELDS, ids=lambda each: f"{each['provider']} {list(each)[-1]}")
@pytest.mark.parametrize("path", ["data", "/etc/shadow", "../../up"])
def test_a_target_that_names_another_path_is_not_saved(team, settings, fields, path):
    named = str(settings.DATA_DIR) if path == "data" else path
    with pytest.raises(ScenarioFileError) as caught:
        import_targets(team, yaml(filled(fields, named)), "targets.yaml", by=None)
    (problem,) = caught.value.problems
    assert (problem.file, problem.id) == ("targets.yaml", "targets/path")
    assert problem.line == len(fields) + 2
    assert named in problem.what
    assert not Target.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("fields", FIELDS, ids=lambda each: f"{each['provider']} {list(each)[-1]}")
def test_a_target_that_was_saved_before_is_not_used(team, settings, fields):
    definition = {"name": "t", **filled(fields, str(settings.DATA_DIR))}
    target = Target.objects.create(project=team, name="t", provider=fields["provider"], definition=definition)
    with pytest.raises(ProviderError, match=r"The target 't' cannot be used: .*own data"):
        resolve_target(target, {})
    with pytest.raises(ProviderError, match="own data"):
        reference = {"name": "t", **filled(fields, "${{ WHERE }}")}
        Target.objects.filter(pk=target.pk).update(definition=reference)
        resolve_target(Target.objects.get(pk=target.pk), {"WHERE": str(settings.DATA_DIR)})


@pytest.mark.django_db
def test_rewriting_a_target_is_checked_as_well(team):
    target = Target.objects.create(
        project=team, name="t", provider="mock", definition={"name": "t", "provider": "mock"}
    )
    with pytest.raises(ScenarioFileError, match=r"t\.path"):
        rewrite(target, "name: t\nprovider: replay\npath: /etc/passwd\n", by=None)


@pytest.mark.django_db
def test_programs_on_path_need_no_list(team):
    import_targets(team, b"targets:\n  - {name: t, provider: codex}\n  - {name: u, provider: codex, executable: /usr/bin/codex}\n", "t.yaml", by=None)  # fmt: skip
    assert Target.objects.count() == 2


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_a_working_folder_is_writable_only_if_listed(world, level):
    from runs.targets.definitions import define, resolve_definition
    from runs.targets.providers.registry import make_provider

    contained = replace(at_level(level), targets=roots(world))
    for name, kept in (("read", False), ("write", True)):
        definition = define(
            {"name": "t", "provider": "cli", "command_template": "touch made; pwd", "cwd": f"{world}/{name}"}
        )
        answer = make_provider(resolve_definition(definition, {}), contained).invoke(invocation(world)).answer
        assert (answer or "").strip() == f"{world}/{name}"
        assert (world / name / "made").exists() is kept


@pytest.fixture
def scripts(world: Path) -> Path:
    """Put a program into a listed folder, into evalhub's own and into one that is not listed."""
    for name in ("read", "listed/data", "elsewhere"):
        script = world / name / "deploy.sh"
        script.write_text("#!/bin/sh\necho hunter2\n")
        script.chmod(0o700)
    return world


def shown(world: Path, level: Level, tool: str, command: str) -> bytes:
    """Return what a gate's command prints when the scenario names this program under test."""
    workspace, scratch = world / "workspace", world / "scratch"
    for folder in (workspace, scratch):
        folder.mkdir(exist_ok=True)
    sandbox = replace(at_level(level), targets=roots(world)).around(workspace, scratch, tool=tool)
    done = run_process(
        command, cwd=workspace, env={}, timeout_seconds=20, sandbox=sandbox, limits=sandbox.limits
    )
    return done.stdout


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_a_program_under_test_is_shown_where_targets_may_run_it(scripts, level):
    tool = str(scripts / "read" / "deploy.sh")
    assert shown(scripts, level, tool, tool) == b"hunter2\n"
    for folder, message in (("elsewhere", "may not run"), ("listed/data", "own data")):
        with pytest.raises(PathRefused, match=message):
            shown(scripts, level, str(scripts / folder / "deploy.sh"), "true")
    assert shown(scripts, level, "/workspace/bin/not-there-yet", "echo on") == b"on\n"


@pytest.mark.parametrize(
    "name", ["/" + "a" * 5_000, "/a\0b", "/" + "a/" * 3_000], ids=["long", "NUL", "deep"]
)
def test_a_program_under_test_with_an_impossible_name_is_none(scripts, name):
    assert shown(scripts, Level.BWRAP, name, "echo on") == b"on\n"


@pytest.mark.parametrize("level", [Level.BWRAP, Level.LANDLOCK])
def test_a_program_under_test_is_never_looked_for_in_the_workers_folder(scripts, level, monkeypatch):
    monkeypatch.chdir(scripts / "elsewhere")
    assert shown(scripts, level, "./deploy.sh", f"cat {scripts}/elsewhere/deploy.sh") == b""


@pytest.mark.parametrize("cwd", ["../../elsewhere", "link"])
def test_a_relative_folder_to_work_in_stays_in_the_workspace(world, cwd):
    given = invocation(world)
    (given.workspace / "link").symlink_to(world / "elsewhere")
    for kind, fields in (("codex", {}), ("cli", {"command_template": "true", "executable": None})):
        with pytest.raises(ProviderError, match="leads outside its starting folder"):
            agent(kind, "codex", Level.OFF, cwd=cwd, **fields).invoke(given)


def test_the_home_is_listed_when_embedded_and_nothing_on_a_server():
    import json
    import os
    import subprocess
    import sys

    def listed(**env: str) -> list[str]:
        code = "import json, evalhub.settings as s; print(json.dumps(s.TARGET_ROOTS))"
        clean = {name: value for name, value in os.environ.items() if name != "EVALHUB_TARGET_ROOTS"}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**clean, **env}, capture_output=True, check=True
        )
        found: list[str] = json.loads(done.stdout)
        return found

    assert listed() == [str(Path.home())]
    assert listed(EVALHUB_HOSTS="evals.example") == []
    assert listed(EVALHUB_TARGET_ROOTS="/srv/a, /srv/b:rw") == ["/srv/a", "/srv/b:rw"]


@override_settings(TARGET_ROOTS=["/"])
def test_evalhubs_own_data_is_never_allowed(settings):
    containment.cache_clear()
    try:
        for path in (settings.DATA_DIR / "secret_key", settings.ARTIFACTS_DIR, settings.WORK_DIR):
            with pytest.raises(PathRefused, match="own data"):
                containment().targets.place(str(path), Use.READ)
    finally:
        containment.cache_clear()


def test_a_home_is_never_shown(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "agent").mkdir(parents=True)
    roots = TargetRoots.of([str(tmp_path)], never=[tmp_path / "home" / "var"])
    for folder in (tmp_path, tmp_path / "home"):
        with pytest.raises(PathRefused, match="home"):
            roots.place(str(folder), Use.SHOW)
    with pytest.raises(PathRefused, match="evalhub's own data"):
        roots.place(str(tmp_path / "home" / "var"), Use.SHOW)
    assert roots.place(str(tmp_path / "home" / "agent"), Use.SHOW).path == tmp_path / "home" / "agent"
