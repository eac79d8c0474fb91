"""The command line itself: outside its environment, its help, its completion, and as an installed package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from django.core.management import load_command_class

from evalhub.version import read_version
from evalhub.web.commands import HelpfulCommand
from tests.test_docs import OUR_COMMANDS

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).resolve().parents[2]


def own_environment(data: Path, **more: str) -> dict[str, str]:
    """Return the variables of a person's shell, with a data directory of the test's own."""
    left = ("DATABASE_URL", "EVALHUB_BROKER_URL", "DJANGO_SETTINGS_MODULE", "PYTHONPATH")
    return {
        **{name: value for name, value in os.environ.items() if name not in left},
        "EVALHUB_DATA": str(data),
        **more,
    }


def test_outside_its_environment_it_says_how_to_call_it(tmp_path: Path) -> None:
    # Without site-packages, as with the system's Python.
    argv = [sys.executable, "-S", "manage.py", "show_run", "1"]
    done = subprocess.run(
        argv, cwd=ROOT, env=own_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "has no package 'django'." in done.stderr
    assert done.stderr.strip().endswith(f"Run {ROOT / '.venv' / 'bin' / 'python'} manage.py show_run 1")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", OUR_COMMANDS)
def test_help_has_examples_and_describes_every_argument(name: str) -> None:
    command = load_command_class(OUR_COMMANDS[name], name)
    assert isinstance(command, HelpfulCommand)
    text = command.create_parser("evalhub", name).format_help()
    own, _, rest = text.partition("Django's options:")
    assert f"\nexamples:\n  evalhub {name}" in rest
    assert "--traceback" in rest.partition("examples:")[0]
    positional = own.partition("positional arguments:\n")[2].partition("\n\n")[0]
    described = re.findall(r"^  (\S+)((?: +.+)?(?:\n {10,}.+)*)", positional, re.MULTILINE)
    assert [argument for argument, text in described if not text.strip()] == []


def test_run_scenarios_groups_its_options() -> None:
    command = load_command_class("runs", "run_scenarios")
    text = command.create_parser("evalhub", "run_scenarios").format_help()
    titles = ("what to run:", "on what:", "how many, how long:", "judge:", "compare with:", "output:")
    assert [title for title in titles if f"\n{title}\n" not in text] == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("evalhub run_", {"run_scenarios", "run_examples"}),
        ("evalhub run_scenarios --reg", {"--regression-rule"}),
        ("evalhub export_run 3 --format ju", {"junit"}),
    ],
)
def test_the_shell_completes_commands_and_options(tmp_path: Path, line: str, expected: set[str]) -> None:
    answer = tmp_path / "answer"
    env = own_environment(tmp_path / "data", _ARGCOMPLETE="1", COMP_LINE=line, COMP_POINT=str(len(line)))
    env["_ARGCOMPLETE_STDOUT_FILENAME"] = str(answer)
    subprocess.run(
        [sys.executable, "-m", "evalhub"], cwd=ROOT, env=env, check=True, capture_output=True, timeout=60
    )
    assert {word.strip() for word in answer.read_text().split("\v")} == expected


@pytest.mark.slow
def test_the_installed_package_works_outside_the_clone(tmp_path: Path) -> None:
    wheels, environment = tmp_path / "wheels", tmp_path / "venv"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    packages = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    # The dependencies are those of this environment; evalhub itself comes from the wheel.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    installer = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    wheel = next(wheels.glob("evalhub-*.whl"))
    subprocess.run([*installer, "--python", environment / "bin" / "python", wheel], check=True)

    def evalhub(*words: str) -> str:
        env = own_environment(tmp_path / "data")
        argv = [environment / "bin" / "evalhub", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    folder = packages / "scenarios" / "examples" / "git-basics"
    targets = folder.parent / "targets.yaml"
    dry = evalhub(
        "run_scenarios", str(folder), "--targets", str(targets), "--target", "scripted-agent", "--dry-run"
    )
    assert "git-basics v1 on scripted-agent" in dry
    written = (ROOT / "docs/schemas/gates.json").read_text(encoding="utf-8")
    assert evalhub("check_scenarios", "--schema", "gates") == written
    evalhub("collectstatic", "--noinput", "-v0")
    page = (
        "from django.test import Client\n"
        "print(Client(headers={'host': 'localhost'}).get('/sign-in/').content.decode())"
    )
    assert "/static/css/base." in evalhub("shell", "--no-imports", "-c", page)


WRONG = [
    ({"EVALHUB_ENV_ALLOW": "OPENAI_API_KEY"}, "EVALHUB_ENV_ALLOW: 'OPENAI_API_KEY' is not 'project:NAME'."),
    ({"EVALHUB_HTTP_ALLOW": "http://10.0.0.1/"}, "is neither a host nor a network."),
    ({"EVALHUB_WORKER_LABELS": ",".join(f"label-{n}" for n in range(17))}, "Give a worker 16 at most."),
    ({"EVALHUB_EGRESS_ALLOW": "models"}, "EVALHUB_EGRESS_ALLOW: 'models' is not 'host:port'. Write a name"),
    (
        {"EVALHUB_WORKER_LABELS": "gpu,GPU!"},
        "EVALHUB_WORKER_LABELS: 'GPU!' isn't a valid label. Write lower-case",
    ),
    ({"EVALHUB_LEASE_SECONDS": "soon"}, "EVALHUB_LEASE_SECONDS is 'soon'. Give it a whole number"),
    ({"EVALHUB_MIN_FREE_MB": "much"}, "EVALHUB_MIN_FREE_MB is 'much'. Give it a whole number"),
]
PROCESSES = [
    ("manage.py", "migrate"),
    ("manage.py", "up", "--once"),
    ("manage.py", "check_scenarios", "."),
    ("manage.py", "doctor"),
    ("-m", "celery", "--app", "evalhub", "worker"),
    ("-m", "gunicorn", "evalhub.wsgi:application", "--bind", "127.0.0.1:0", "--preload"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("words", PROCESSES, ids=" ".join)
@pytest.mark.parametrize(("variables", "sentence"), WRONG, ids=lambda value: str(value)[:30])
def test_no_process_starts_with_a_wrong_setting(tmp_path, words, variables, sentence):
    env = own_environment(tmp_path, **variables)
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == (2 if words[0] == "manage.py" else 1)
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--version"], ["version"], ["doctor", "--version"]])
def test_the_version_is_evalhubs(tmp_path: Path, words: list[str]) -> None:
    argv = [sys.executable, "manage.py", *words]
    done = subprocess.run(argv, cwd=ROOT, env=own_environment(tmp_path), capture_output=True, text=True)
    assert done.stdout == f"{read_version(ROOT / 'CHANGELOG.md')}\n"
