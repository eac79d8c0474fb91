"""A private PostgreSQL and a private Redis, each in a temporary folder and on a Unix socket only."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

START_SECONDS = 20.0


class NotHere(Exception):
    """The program is not installed; the message says which."""


def postgres_programs() -> Path:
    """Return the folder of the newest PostgreSQL's programs. Raises `NotHere`."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True
    )
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NotHere("There is no PostgreSQL here: initdb was not found. Install it with 'make services'.")


def redis_program() -> str:
    """Return the path of a Redis or Valkey server. Raises `NotHere`."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise NotHere("There is no Redis here: redis-server was not found. Install it with 'make services'.")
    return found


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return how to start a program that refuses to be root, as `Popen` takes it; the folder becomes its user's."""
    if os.geteuid() != 0:
        return {}
    user = next(entry for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _folder(prefix: str) -> Path:
    # In memory where there is such a place: nothing here has to outlive the tests.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=memory))
    folder.chmod(0o755)
    return folder


def _until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"It did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.03)


def _ended(process: subprocess.Popen[bytes], signum: int) -> None:
    process.send_signal(signum)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL and give its address as DATABASE_URL takes it. Raises `NotHere`."""
    programs = postgres_programs()
    folder = _folder("evalhub-pg-")
    user = _unprivileged(folder)
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    data, log = folder / "data", folder / "log"
    init = [programs / "initdb", "-D", data, "-U", "evalhub", "-A", "trust", "-E", "UTF8", "--no-sync"]
    options = [
        "listen_addresses=",
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
        "max_connections=100",
    ]
    argv = [
        programs / "postgres",
        "-D",
        data,
        "-k",
        folder,
        *(word for option in options for word in ("-c", option)),
    ]
    try:
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL, env=env, cwd="/", **user)
        with log.open("wb") as stream:
            process = subprocess.Popen(
                argv,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=env,
                cwd="/",
                start_new_session=True,
                **user,
            )
        try:
            _until(lambda: _accepts(folder), process, log)
            yield f"postgresql://evalhub@/postgres?host={folder}"
        finally:
            # SIGINT is PostgreSQL's fast shutdown: sessions are ended, nothing is waited for.
            _ended(process, signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _accepts(folder: Path) -> bool:
    try:
        psycopg.connect(host=str(folder), user="evalhub", dbname="postgres", connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def new_database(url: str, name: str, template: str = "") -> str:
    """Make another database on the server of a DATABASE_URL, empty or a copy, and return its address."""
    before, _, after = url.rpartition("/postgres?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template or "template1"}"')
    return f"{before}/{name}?{after}"


def start_redis(folder: Path, program: str, socket: Path) -> subprocess.Popen[bytes]:
    """Start a Redis or Valkey server on a Unix socket and return it when it answers."""
    log = folder / "redis.log"
    argv = [program, "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    argv += ["--appendonly", "yes", "--save", ""]
    with log.open("ab") as stream:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    _until(lambda: _listens(socket), process, log)
    return process


def _listens(path: Path) -> bool:
    import socket

    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@contextmanager
def redis() -> Iterator[str]:
    """Run a Redis and give its address as EVALHUB_BROKER_URL takes it. Raises `NotHere`."""
    program = redis_program()
    folder = _folder("evalhub-rd-")
    try:
        process = start_redis(folder, program, folder / "redis.sock")
        try:
            yield f"redis+socket://{folder / 'redis.sock'}?virtual_host=0"
        finally:
            _ended(process, signal.SIGTERM)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
