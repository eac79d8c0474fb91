"""compose.yaml as an engine reads it, and its services as processes."""

from __future__ import annotations

import http.client
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from evalhub.web.management.commands.up import LOOPBACK
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
VARIABLE = re.compile(r"\$\{(\w+):([-+])([^}]*)\}")


def replaced(match: re.Match[str], value: str) -> str:
    """Return what `${NAME:-default}` and `${NAME:+other}` stand for with this value of the variable."""
    return value or match[3] if match[2] == "-" else match[3] if value else ""


def env_file(name: str) -> dict[str, str]:
    """Return the variables of a file for --env-file."""
    lines = (DOCKER / name).read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def compose(**variables: str) -> dict[str, Any]:
    """Return compose.yaml as an engine reads it: variables replaced, `$$` a dollar."""
    text = (DOCKER / "compose.yaml").read_text()
    text = VARIABLE.sub(lambda match: replaced(match, variables.get(match[1], "")), text)
    return yaml.safe_load(text.replace("$$", "$"))


class Stack:
    """The services of compose.yaml as processes: their commands and environment, with private servers in place of
    the two containers, and a folder in place of each volume, /tmp and /run/secrets."""

    def __init__(self, folder: Path, database: str, broker: str, **variables: str) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            self.port = probe.getsockname()[1]
        self.services = compose(EVALHUB_PORT=str(self.port), **variables)["services"]
        self.database = database
        self.broker = broker
        secrets = folder / "secrets"
        secrets.mkdir()
        values = {
            "database_url": database,
            "broker_url": broker,
            "secret_key": "s" * 50,
            "metrics_token": "token",
            "store_access_key": "key",
            "store_secret_key": "secret",
        }
        for name, value in values.items():
            (secrets / name).write_text(value + "\n")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, word: str) -> str:
        """Return a word of a command or variable with the container's paths replaced."""
        paths = {"/tmp": self.folder, "/run/secrets": self.folder / "secrets"}
        word = re.sub(r"/tmp(?=/)|/run/secrets", lambda match: str(paths[match[0]]), word)
        return word.replace("0.0.0.0", LOOPBACK)

    def env(self, name: str) -> dict[str, str]:
        declared = {key: self.here(value) for key, value in self.services[name]["environment"].items()}
        bin_ = str(Path(sys.executable).parent)
        inherited = {"PATH": f"{bin_}:{os.environ['PATH']}", "HOSTNAME": socket.gethostname()}
        # No engine here: what this machine offers as a sandbox has to do.
        ours = {"EVALHUB_SANDBOX": "prefer"}
        return (
            inherited
            | declared
            | ours
            | {"EVALHUB_DATA": str(self.disk(name)), "EVALHUB_STATIC": str(self.folder / "static")}
        )

    def disk(self, name: str) -> Path:
        """Return the folder in place of the service's volume."""
        (volume,) = self.services[name]["volumes"]
        return self.folder / volume.partition(":")[0]

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
        until(
            ready,
            seconds,
            lambda: f"The log of {name}: {(self.folder / f'{name}.log').read_text(errors='replace')[-3000:]}",
        )

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            process.wait(30)
