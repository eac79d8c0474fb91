"""Everything on one machine: broker, web and worker, supervised, after a run of the examples."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connections

from evalhub.broker import broker_directory, broker_program, write_broker_config
from evalhub.lib.disk_errors import is_disk_full
from evalhub.supervisor import SupervisedProcess, Supervisor, tie_to
from evalhub.teams.management.commands.signin_link import PORT_FILE, new_link, sign_in_sentence
from evalhub.web import example_agent
from evalhub.web.checks import TAG
from evalhub.web.commands import HIGHEST_PORT, WRONG_USE, HelpfulCommand, disk_full, port_number

LOOPBACK = "127.0.0.1"
START_SECONDS = 90
"""For a process to answer; a first start on a busy machine also compiles every module."""


class Command(HelpfulCommand):
    help = "Run evalhub on this machine: migrate, start every process, run the examples, serve the pages."
    examples = (
        "",
        "--port 8001",
        "--once",
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=port_number, default=8000, help="port on 127.0.0.1 (default: 8000)"
        )
        parser.add_argument("--once", action="store_true", help="exit after the summary of the examples")
        parser.add_argument("--no-examples", action="store_true", help="serve what is there, run nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")

    def handle(self, *, port: int, once: bool, no_examples: bool, **options: Any) -> None:
        self.began, self.json, self.summary = time.monotonic(), options["json"], b"null"
        try:
            code = self._start(port, once=once, examples=not no_examples)
        except (OSError, OperationalError) as error:
            if not is_disk_full(error):
                raise
            raise CommandError(disk_full(), returncode=WRONG_USE) from error
        if code:
            sys.exit(code)

    def _start(self, port: int, *, once: bool, examples: bool) -> int:
        self.check(tags=[TAG])
        with socket.socket() as probe:
            # As the server does, so that a port that was used a moment ago counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError as error:
                raise CommandError(
                    f"Port {port} cannot be used: {error.strerror}. Choose another one: make run PORT={port % HIGHEST_PORT + 1}.",
                    returncode=WRONG_USE,
                ) from error
        lock = _lock(settings.DATA_DIR, port)
        supervisor = Supervisor(lambda text: self.stderr.write(text))
        try:
            return self._run(supervisor, port, once=once, examples=examples)
        finally:
            supervisor.stop()
            lock.close()

    def _run(self, supervisor: Supervisor, port: int, *, once: bool, examples: bool) -> int:
        logs = settings.DATA_DIR / "logs"
        logs.mkdir(exist_ok=True)
        # Let the processes find, from evalhub's folder, the files that variables name from the caller's.
        os.environ["EVALHUB_DATA"] = str(settings.DATA_DIR)
        if settings.DATABASE_URL.startswith("sqlite:"):
            os.environ["DATABASE_URL"] = (
                f"sqlite:///{quote(str(Path(settings.DATABASES['default']['NAME']).resolve()))}"
            )
        for name, value in os.environ.items():
            if (
                value
                and name.endswith("_FILE")
                and name.startswith(("EVALHUB_", "DATABASE_", "LLM_TOOL_TEST_"))
            ):
                os.environ[name] = str(Path(value).resolve())
        # Read by the processes below: links in notifications lead to this port.
        os.environ.setdefault(
            "EVALHUB_URL", settings.PUBLIC_URL if settings.EVALHUB_HOSTS else f"http://{LOOPBACK}:{port}"
        )
        if not settings.BROKER_URL:
            supervisor.add(_broker(logs))
        call_command("migrate", verbosity=0, interactive=False)
        connections.close_all()
        _collect_static()
        supervisor.add(_web(logs, port))
        if not supervisor.wait_until(lambda: _answers(port), START_SECONDS) and not supervisor.stopping:
            raise CommandError(
                f"web did not start within {START_SECONDS} seconds. Look into {logs / 'web.log'}."
            )
        if examples:
            supervisor.add(_example_agent(logs))
        for service in _workers(logs):
            supervisor.add(service)
        code = self._examples(supervisor) if examples else 0
        stays = not once and not supervisor.stopping
        self._announce(port, serving=stays)
        if not stays:
            return code
        while not supervisor.stopping:
            supervisor.watch(1.0)
        if not self.json:
            self.stdout.write("Stopping.")
        return 0

    def _examples(self, supervisor: Supervisor) -> int:
        """Run the examples in a process of their own; return its exit code."""
        with tempfile.TemporaryFile() as document:
            examples = subprocess.Popen(
                [sys.executable, "-m", "evalhub", "run_examples", *(["--json"] if self.json else [])],
                cwd=settings.BASE_DIR,
                stdout=document if self.json else None,
                preexec_fn=partial(tie_to, os.getpid()),
                process_group=0,
            )
            while examples.poll() is None:
                supervisor.watch(0.2)
                if supervisor.stopping:
                    examples.send_signal(signal.SIGINT)
                    examples.wait(10)
            document.seek(0)
            self.summary = document.read() or self.summary
        return examples.returncode

    def _announce(self, port: int, *, serving: bool) -> None:
        """Say where the pages are while they are served; for programs also what became of the examples."""
        address = f"http://{LOOPBACK}:{port}/" if serving else None
        link = new_link(port) if serving and settings.EMBEDDED else None
        if self.json:
            self.stdout.write(
                json.dumps({"url": address, "sign_in": link, "examples": json.loads(self.summary)})
            )
        elif address:
            seconds = time.monotonic() - self.began
            self.stdout.write(f"\nServing on {address} after {seconds:.1f} s. Ctrl-C stops everything.")
            if link:
                self.stdout.write(sign_in_sentence(link))
        # A program reads it through a pipe while evalhub goes on.
        self.stdout.flush()


def _lock(data: Path, port: int) -> IO[str]:
    """Lock the data directory and write the port there. Raises CommandError if another process has the lock."""
    lock = (data / PORT_FILE).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise CommandError(
            f"evalhub is running in {data} already. Stop it first, or give another directory in EVALHUB_DATA.",
            returncode=WRONG_USE,
        ) from error
    lock.truncate(0)
    lock.write(str(port))
    lock.flush()
    return lock


def _service(name: str, argv: list[str], logs: Path, **options: Any) -> SupervisedProcess:
    return SupervisedProcess(name, argv, logs / f"{name}.log", settings.BASE_DIR, **options)


def _broker(logs: Path) -> SupervisedProcess:
    folder = broker_directory(settings.DATA_DIR)
    program = broker_program()
    if program is None:
        raise CommandError(
            "No broker is here: install valkey or redis, or give the address of one in EVALHUB_BROKER_URL."
        )
    argv = [
        program,
        str(write_broker_config(settings.DATA_DIR, settings.SECRET_KEY)),
        "--port",
        "0",
        "--unixsocket",
        str(folder / "valkey.sock"),
        "--unixsocketperm",
        "700",
    ]
    # Kept on disk, though every message could be lost: a restart then costs nothing at all.
    argv += ["--dir", str(folder), "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    argv += ["--maxmemory-policy", "noeviction", "--loglevel", "warning"]
    return _service("broker", argv, logs)


def _collect_static() -> None:
    """Collect static files when a source is newer than the manifest."""
    manifest = settings.STATIC_ROOT / "staticfiles.json"
    sources = [path.stat().st_mtime for path in settings.STATICFILES_DIRS[0].rglob("*")]
    stamp = settings.STATIC_ROOT / ".version"
    known = stamp.read_text() if stamp.exists() else ""
    now = f"{settings.VERSION} {max(sources, default=0.0)}"
    if not manifest.exists() or known != now:
        call_command("collectstatic", interactive=False, verbosity=0, clear=manifest.exists())
        stamp.write_text(now)


def _web(logs: Path, port: int) -> SupervisedProcess:
    argv = [sys.executable, "-m", "gunicorn", "evalhub.wsgi:application", "--bind", f"{LOOPBACK}:{port}"]
    argv += ["--worker-class", "evalhub.web.server.ThreadWorker", "--workers", "2", "--threads", "8"]
    argv += ["--graceful-timeout", "10", "--log-level", "warning", "--no-control-socket", "--preload"]
    argv += ["--config", str(settings.ASSETS / "gunicorn.conf.py")]
    # Threads that wait for the interpreter's lock gain nothing by memory pools of their own.
    return _service("web", argv, logs, env={"MALLOC_ARENA_MAX": "1"})


def _workers(logs: Path) -> list[SupervisedProcess]:
    celery = [sys.executable, "-m", "celery", "--app", "evalhub"]
    worker = [*celery, "worker", "--pool", "threads", "--loglevel", "WARNING"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    # Celery's embedded beat is a separate process, which would outlive a killed worker.
    beat = [*celery, "beat", "--schedule", str(settings.DATA_DIR / "beat-schedule"), "--pidfile", ""]
    beat += ["--loglevel", "WARNING"]
    return [
        _service("worker", worker, logs, grace_seconds=15),
        _service("beat", beat, logs),
    ]


def _example_agent(logs: Path) -> SupervisedProcess:
    """Return the example agent behind HTTP; workers that start later know where it listens."""
    port = example_agent.free_port()
    os.environ.update(example_agent.agent_addresses(port))
    return _service("example-agent", example_agent.agent_command(port), logs)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": f"localhost:{port}"})
        return connection.getresponse().status in (200, 503)
    except OSError:
        return False
    finally:
        connection.close()
