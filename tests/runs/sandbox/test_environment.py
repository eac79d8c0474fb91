"""A trial's variables act on the trial's own program, never on what starts it, and stand in no argument list."""

from __future__ import annotations

import base64
import secrets
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from runs.engine import run_here
from runs.engine.grading.grade import Grading, grade_in_workspace
from runs.errors import ProviderError
from runs.sandbox.process import run_process
from runs.sandbox.sandbox import Level
from tests.builders import make_project
from tests.greeting import greeting
from tests.runs import carried
from tests.runs.carrying import beside, launch, shell_target, suite_of
from tests.runs.containments import containment
from tests.runs.processes import unique_seconds

pytestmark = pytest.mark.one_database

CONTAINED = [Level.BWRAP, Level.LANDLOCK]
HELD_BACK = [*CONTAINED, Level.LIMITS]


def run(level: Level, folders, command, **changes):
    sandbox = containment(level).around(*folders)
    options = {"cwd": folders[0], "env": {}, "timeout_seconds": 20.0, "sandbox": sandbox, **changes}
    return run_process(command, **options)


@pytest.mark.parametrize("level", CONTAINED)
@pytest.mark.parametrize("path", ["./evil.so", "evil.so"])
def test_a_preloaded_library_acts_inside_only(folders, library, mark, level, path):
    shutil.copy(library, folders[0] / "evil.so")
    place = path if path.startswith("./") else str(folders[0] / path)
    result = run(level, folders, "echo done", env={"LD_PRELOAD": place})
    assert result.stdout == b"done\n"
    assert not mark.exists()
    # Where the path means something inside, the program itself has loaded it.
    inside = level is Level.LANDLOCK or path.startswith("./")
    assert (folders[0] / "loaded").exists() is inside


@pytest.mark.parametrize("level", CONTAINED)
@pytest.mark.parametrize("name", ["LD_AUDIT", "LD_LIBRARY_PATH", "GCONV_PATH", "PYTHONPATH", "PYTHONHOME"])
def test_no_variable_of_a_loader_reaches_a_helper(folders, library, mark, level, name):
    for made in ("evil.so", "libc.so.6", "libcap.so.2", "sitecustomize.py"):
        shutil.copy(library, folders[0] / made)
    (folders[0] / "sitecustomize.py").write_text(f"open({str(mark)!r}, 'w')")
    value = str(folders[0] / "evil.so") if name == "LD_AUDIT" else str(folders[0])
    run(level, folders, "true", env={name: value})
    assert not mark.exists()


@pytest.mark.parametrize("level", [Level.LIMITS, Level.OFF])
@pytest.mark.parametrize("name", ["LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "GCONV_PATH", "PYTHONPATH"])
def test_loader_variables_are_refused_without_sandbox(folders, level, name):
    with pytest.raises(ProviderError, match=f"The variable {name} makes programs load code") as caught:
        run(level, folders, "true", env={name: "./evil.so"})
    assert caught.value.kind == "configuration"


@pytest.mark.parametrize("level", [*HELD_BACK, Level.OFF])
def test_no_value_is_in_an_argument_list(folders, level):
    secret = f"sk-{secrets.token_hex(8)}"
    seen: list[str] = []
    began = threading.Event()

    def look() -> bool:
        began.set()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                text = path.read_bytes()
            except OSError:
                continue
            if secret.encode() in text:
                seen.append(text.decode())
        return False

    result = run(
        level, folders, "sleep 0.6; test -n $API_KEY && echo has", env={"API_KEY": secret}, cancelled=look
    )
    assert result.stdout == b"has\n"
    assert began.is_set()
    assert seen == []


def environments_with(word: bytes) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if word in path.read_bytes():
                found.append((path.parent / "comm").read_text().strip())
        except OSError:
            continue
    return found


def test_the_environment_of_bubblewrap_has_no_variable(folders):
    secret = f"sk-{secrets.token_hex(8)}"
    found: list[str] = []

    def look() -> bool:
        found.extend(environments_with(secret.encode()))
        return "sleep" in found

    run(Level.BWRAP, folders, "exec sleep 20", env={"API_KEY": secret}, cancelled=look)
    assert "sleep" in found
    assert set(found) <= {"sh", "sleep"}, "only the program, before and after it became another"


@pytest.mark.parametrize("level", HELD_BACK)
@pytest.mark.parametrize(
    ("env", "message"),
    [
        pytest.param({"A": "x\0--bind\0/\0/workspace"}, "A contains a null byte", id="a NUL in the value"),
        pytest.param({"A\0--bind\0/\0/": "x"}, "not a valid variable name", id="a NUL in the name"),
        pytest.param({"A=B": "x"}, "not a valid variable name", id="an equals sign"),
        pytest.param({"": "x"}, "not a valid variable name", id="no name"),
        pytest.param({"A": "x" * 140_000}, "longer than the system allows", id="too long"),
    ],
)
def test_a_variable_that_cannot_be_is_refused(folders, level, env, message):
    with pytest.raises(ProviderError, match="cannot start") as caught:
        run(level, folders, "true", env=env)
    assert message in str(caught.value)


@pytest.mark.parametrize("level", HELD_BACK)
def test_many_and_large_variables_arrive(folders, level):
    env = {f"GIVEN_{n}": "x" * 20_000 for n in range(50)}
    assert run(level, folders, "env | grep -c ^GIVEN_", env=env).stdout == b"50\n"


@pytest.mark.parametrize("level", HELD_BACK)
def test_a_program_gets_the_given_variables_only(folders, level, monkeypatch):
    monkeypatch.setenv("WORKERS_SECRET", "not for agents")
    words = run(level, folders, "env", env={"GIVEN": "a b"}).stdout.decode().splitlines()
    names = {word.partition("=")[0] for word in words}
    assert "GIVEN=a b" in words
    assert names <= {"GIVEN", "PATH", "HOME", "TMPDIR", "LANG", "PWD", "SHLVL", "_", "EVALHUB_PROCESS"}


@pytest.mark.django_db(transaction=True)
def test_a_fixtures_library_never_runs_outside(library, mark):
    containment(Level.BWRAP)
    project = carried.shell_project()
    trial = carried.one(
        project,
        setup=[f"echo {encoded(library)} | base64 -d > evil.so"],
        prompt="echo fine",
        criteria={"tool": {"env": {"LD_PRELOAD": "./evil.so"}}, "gates": []},
    )
    assert trial.outcome == "pass", trial.error
    assert not mark.exists()


def encoded(library: Path) -> str:
    return base64.b64encode(library.read_bytes()).decode()


GRADED = """\
scripts:
  post:
    - command: base64 -d < a.txt > evil.so
"""


def test_grading_loads_no_library_outside(library, mark, tmp_path):
    text = greeting("- type: command_succeeds\n  command: test -e loaded\n") + GRADED
    text = text.replace("target:\n", "target:\n  env: {LD_PRELOAD: ./evil.so}\n", 1)
    asked = Grading.model_validate(
        {"suite": {"name": "greet.yaml", "text": text}, "evidence": {"files": {"a.txt": encoded(library)}}}
    )
    graded = grade_in_workspace(asked, tmp_path / "work", containment(Level.BWRAP))
    assert graded["outcome"] == "pass", graded
    assert not mark.exists()


@pytest.mark.django_db(transaction=True)
def test_a_key_of_a_running_trial_is_in_no_argument_list(monkeypatch):
    containment(Level.BWRAP)
    key, seconds = f"sk-{secrets.token_hex(8)}", unique_seconds(1.5)
    monkeypatch.setenv("AGENT_KEY", key)
    project = make_project("default")
    shell_target(project, env={"API_KEY": "${{ AGENT_KEY }}"})
    suite = suite_of(project, agent={"prompt": f'test -n "$API_KEY" && sleep {seconds} && echo has'})
    run = launch(suite, targets=["shell"]).runs.get()
    seen: list[bytes] = []
    carried_out = threading.Event()

    def watch() -> None:
        while not carried_out.wait(0.05):
            seen.extend(argument_lists())

    with beside(watch):
        run_here.run_here(run.launch)
        carried_out.set()
    trial = run.trial_set.get()
    assert trial.answer.strip() == "has", trial.error
    assert any(seconds.encode() in each for each in seen)
    assert not any(key.encode() in each for each in seen)


def argument_lists() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes())
    return found
