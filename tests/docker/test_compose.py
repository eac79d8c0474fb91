"""docker/: what the files say, and the very commands of compose.yaml as processes, where no engine runs."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from evalhub.web.management.commands.up import LOOPBACK
from tests.requirements import missing
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
OWN = ("migrate", "web", "worker", "beat")
LASTING = ("web", "worker", "beat", "postgres", "redis")
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")

SCENARIO = """\
name: trivial
description: One gate.
task: {prompt: Do nothing.}
target: {binary: nothing}
evaluation: {gates: [{type: no_transcript_errors}]}
"""
TARGETS = "targets: [{name: agent, provider: mock, response: done}]\n"


def compose(**variables: str) -> dict[str, Any]:
    """Return compose.yaml as an engine reads it: variables replaced, `$$` a dollar."""
    text = (DOCKER / "compose.yaml").read_text()
    text = _VARIABLE.sub(lambda match: variables.get(match[1], match[2]), text)
    return yaml.safe_load(text.replace("$$", "$"))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return compose()["services"]


@pytest.mark.parametrize("name", LASTING)
def test_every_service_that_lasts_restarts_and_is_looked_after(services, name):
    service = services[name]
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["healthcheck"]["interval"]


@pytest.mark.parametrize("name", OWN)
def test_own_services_have_a_read_only_root_and_no_capability(services, name):
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["volumes"] == ["data:/data"]


@pytest.mark.parametrize("name", OWN)
def test_secrets_come_from_files_that_the_service_is_given(services, name):
    service = services[name]
    files = {value for key, value in service["environment"].items() if key.endswith("_FILE")}
    assert files == {f"/run/secrets/{secret}" for secret in service["secrets"]}
    assert not any("password" in str(value).lower() for value in service["environment"].values())


def test_every_secret_and_volume_is_declared():
    whole = compose()
    for service in whole["services"].values():
        assert set(service.get("secrets", ())) <= set(whole["secrets"])
        assert {each.split(":")[0] for each in service["volumes"]} <= set(whole["volumes"])


def test_every_variable_is_a_setting(services):
    known = (ROOT / "evalhub/settings.py").read_text()
    for name in OWN:
        for variable in services[name]["environment"]:
            assert f'"{variable.removesuffix("_FILE")}"' in known, variable


def test_pages_are_served_on_loopback_only(services):
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert [name for name in services if "ports" in services[name]] == ["web"]


def test_everything_waits_for_the_migration(services):
    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_only_workers_may_make_namespaces(services):
    profiles = {
        name: [o for o in services[name].get("security_opt", ()) if "seccomp" in o] for name in services
    }
    assert [name for name, found in profiles.items() if found] == ["worker"]
    assert profiles["worker"] == ["seccomp=./seccomp-bubblewrap.json"]


def test_the_profile_lets_bubblewrap_work_and_keeps_the_kernel_shut():
    profile = json.loads((DOCKER / "seccomp-bubblewrap.json").read_text())
    denied = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not denied & {
        "clone",
        "clone3",
        "unshare",
        "mount",
        "umount2",
        "pivot_root",
        "setns",
        "seccomp",
        "prctl",
    }
    assert denied >= {
        "init_module",
        "finit_module",
        "kexec_load",
        "bpf",
        "perf_event_open",
        "keyctl",
        "reboot",
    }


def test_the_image_is_not_root_and_has_what_the_lock_names():
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    assert "USER evalhub" in lines
    assert lines.index("USER evalhub") > max(n for n, line in enumerate(lines) if line.startswith("RUN"))
    assert any("--require-hashes --requirement requirements.lock" in line for line in lines)
    assert any("collectstatic" in line for line in lines)
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM python:3.11-slim AS build",
        "FROM python:3.11-slim",
    ]


def test_the_image_starts_what_the_web_service_starts(services):
    (last,) = [line for line in (DOCKER / "Dockerfile").read_text().splitlines() if line.startswith("CMD")]
    assert json.loads(last.removeprefix("CMD ")) == services["web"]["command"]


@pytest.mark.parametrize(
    "name", ["manage.py", "evaluators", "scenarios", "runs", "evalhub", "templates", "static"]
)
def test_the_image_holds_what_the_build_context_lets_in(name):
    assert f"!{name}" in (ROOT / ".dockerignore").read_text().splitlines()
    assert f"COPY {name}" in (DOCKER / "Dockerfile").read_text() or name == "manage.py"


class Stack:
    """The services of compose.yaml as processes: their commands and environment, with private servers in place of
    the two containers, and a folder in place of /data, /tmp and /run/secrets."""

    def __init__(self, folder: Path, database: str, broker: str) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            self.port = probe.getsockname()[1]
        self.services = compose(EVALHUB_PORT=str(self.port))["services"]
        self.database = database
        self.broker = broker
        secrets = folder / "secrets"
        secrets.mkdir()
        for name, value in (("database_url", database), ("secret_key", "s" * 50), ("metrics_token", "told")):
            (secrets / name).write_text(value + "\n")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, word: str) -> str:
        """Return a word of a command or variable with the container's paths replaced."""
        paths = {"/tmp": self.folder, "/run/secrets": self.folder / "secrets"}
        word = re.sub(r"/tmp(?=/)|/run/secrets", lambda match: str(paths[match[0]]), word)
        return word.replace("0.0.0.0", LOOPBACK)

    def env(self, name: str) -> dict[str, str]:
        told = {key: self.here(value) for key, value in self.services[name]["environment"].items()}
        bin_ = str(Path(sys.executable).parent)
        inherited = {"PATH": f"{bin_}:{os.environ['PATH']}", "HOSTNAME": socket.gethostname()}
        # No engine here: redis is not a name, and what this machine offers as a sandbox has to do.
        ours = {"EVALHUB_BROKER_URL": self.broker, "EVALHUB_SANDBOX": "prefer"}
        return (
            inherited
            | told
            | ours
            | {"EVALHUB_DATA": str(self.folder / "data"), "EVALHUB_STATIC": str(self.folder / "static")}
        )

    def start(self, name: str) -> None:
        command = [self.here(word) for word in self.services[name]["command"]]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.env(name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def healthy(self, name: str) -> bool:
        """Run the service's own health check."""
        kind, *words = self.services[name]["healthcheck"]["test"]
        words = [self.here(word) for word in words]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        return (
            subprocess.run(command, cwd=ROOT, env=self.env(name), capture_output=True, timeout=60).returncode
            == 0
        )

    def manage(self, *words: str, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.env("web") | env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        with closing(http.client.HTTPConnection(LOOPBACK, self.port, timeout=10)) as connection:
            connection.request("GET", path, headers={"Host": "localhost", **headers})
            with connection.getresponse() as response:
                return response.status, response.read().decode()

    def until(self, ready: Callable[[], bool], seconds: float, name: str) -> None:
        end = time.monotonic() + seconds
        while not ready():
            log = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
            assert time.monotonic() < end, f"{name} was not ready within {seconds:g} s. It said: {log}"
            time.sleep(0.2)

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            process.wait(30)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with ExitStack() as servers:
        try:
            found = Stack(
                tmp_path_factory.mktemp("stack"),
                servers.enter_context(postgres()),
                servers.enter_context(redis()),
            )
        except NotHere as error:
            missing("postgres", str(error))
        servers.callback(found.stop)
        found.manage("collectstatic", "--noinput", "-v0")
        found.start("migrate")
        assert found.processes["migrate"].wait(120) == 0, (found.folder / "migrate.log").read_text()
        for name in ("web", "worker", "beat"):
            found.start(name)
        yield found


def outcome(stack: Stack, run: int) -> str:
    with psycopg.connect(stack.database) as connection:
        row = connection.execute("SELECT outcome FROM runs_run WHERE id = %s", [run]).fetchone()
    return str(row[0]) if row else ""


def asked(stack: Stack, **env: str) -> int:
    """Ask for a mock run through the workers; return its number."""
    (stack.folder / "trivial.yaml").write_text(SCENARIO)
    (stack.folder / "targets.yaml").write_text(TARGETS)
    words = [
        str(stack.folder / "trivial.yaml"),
        "--targets",
        str(stack.folder / "targets.yaml"),
        "--target",
        "agent",
    ]
    (run,) = json.loads(stack.manage("run_scenarios", *words, "--json", **env))["runs"]
    return int(run if isinstance(run, int) else run["run"]["id"])


@pytest.mark.worker
def test_web_answers_and_its_health_check_agrees(stack):
    stack.until(lambda: stack.healthy("web"), 60, "web")
    status, text = stack.get("/healthz")
    assert status == 200
    assert json.loads(text)["database"] == "ok"


@pytest.mark.worker
def test_web_takes_its_secrets_from_files(stack):
    stack.until(lambda: stack.healthy("web"), 60, "web")
    assert stack.get("/metrics")[0] == 403
    assert stack.get("/metrics", Authorization="Bearer told")[0] == 200


@pytest.mark.worker
def test_the_worker_carries_a_run(stack):
    stack.until(lambda: stack.healthy("worker"), 60, "worker")
    run = asked(stack)
    stack.until(lambda: outcome(stack, run) == "pass", 60, "worker")


@pytest.mark.worker
def test_beat_wakes_a_run_whose_message_was_lost(stack):
    stack.until(lambda: stack.healthy("beat"), 60, "beat")
    run = asked(stack, EVALHUB_BROKER_URL=f"redis://{LOOPBACK}:1/0")
    stack.until(lambda: outcome(stack, run) == "pass", 60, "beat")
