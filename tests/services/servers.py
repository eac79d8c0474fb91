"""A private PostgreSQL and a private Redis, each in a temporary folder and on a Unix socket, unless a test asks for a port."""

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


class PostgresServer:
    """A private PostgreSQL that can be stopped and started again; the data stay."""

    def __init__(
        self,
        folder: Path,
        port: int = 0,
        primary: PostgresServer | None = None,
        *,
        superuser: str = "evalhub",
    ) -> None:
        """Make the server's files: an empty cluster, or a standby of `primary`. Raises `NotHere`.

        With a port the server listens on loopback, too.
        """
        self.folder = folder
        self.superuser = superuser
        self.port = port
        self._programs = postgres_programs()
        self._data, self._log = folder / "data", folder / "log"
        self._where: dict[str, Any] = {
            "env": {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(folder)},
            "cwd": "/",
            **_unprivileged(folder),
        }
        self._process: subprocess.Popen[bytes] | None = None
        init = [self._programs / "initdb", "-D", self._data, "-U", superuser, "-A", "trust"]
        init += ["-E", "UTF8", "--no-sync"]
        if primary is not None:
            init = [_base_backup(), "-D", self._data, "-U", "evalhub", "-h", primary.folder]
            init += ["-p", str(primary.port or 5432), "-R", "-c", "fast", "--no-sync"]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL, **self._where)

    @property
    def url(self) -> str:
        """The address as DATABASE_URL takes it."""
        port = f"&port={self.port}" if self.port else ""
        return f"postgresql://{self.superuser}@/postgres?host={self.folder}{port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["listen_addresses=", "fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        options += ["max_connections=200"]
        if self.port:
            options += ["listen_addresses=127.0.0.1", f"port={self.port}"]
        argv = [self._programs / "postgres", "-D", self._data, "-k", self.folder]
        argv += [word for option in options for word in ("-c", option)]
        with self._log.open("ab") as stream:
            self._process = subprocess.Popen(
                argv, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True, **self._where
            )
        _until(lambda: _accepts(self.url), self._process, self._log)

    def stop(self, signum: int = signal.SIGINT) -> None:
        """End every session and the server: PostgreSQL's fast shutdown, or with SIGQUIT as a crash would."""
        if self._process is not None:
            _ended(self._process, signum)

    def wait_for_standby(self) -> None:
        """Let every commit wait for the one standby from now on, and for the standby to be there."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER ROLE evalhub SET synchronous_commit = on")
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            connection.execute("SELECT pg_reload_conf()")
            end = time.monotonic() + START_SECONDS
            streams = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
            while connection.execute(streams).fetchone() != (1,):
                if time.monotonic() > end:
                    raise RuntimeError("The standby does not stream.")
                time.sleep(0.05)

    def promote(self) -> None:
        """Make a standby the primary."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote(wait => true)")


def _base_backup() -> Path:
    beside = postgres_programs() / "pg_basebackup"
    found = beside if beside.exists() else Path(shutil.which("pg_basebackup") or "")
    if not found.is_file():
        raise NotHere("There is no pg_basebackup here. Install PostgreSQL with 'make services'.")
    return found


@contextmanager
def postgres_server(
    port: int = 0, primary: PostgresServer | None = None, *, superuser: str = "evalhub"
) -> Iterator[PostgresServer]:
    """Run a PostgreSQL that can be restarted, or a standby of another one. Raises `NotHere`."""
    folder = _folder("evalhub-pg-")
    try:
        server = PostgresServer(folder, port, primary, superuser=superuser)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """Run a PostgreSQL and give its address as DATABASE_URL takes it. Raises `NotHere`."""
    with postgres_server() as server:
        yield server.url


def _accepts(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def pgbouncer_program() -> str:
    """Return the path of PgBouncer. Raises `NotHere`."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise NotHere(
            "There is no PgBouncer here: pgbouncer was not found. Debian has a package of that name."
        )
    return found


@contextmanager
def pgbouncer(server: PostgresServer, *, pool_mode: str, pool_size: int) -> Iterator[Path]:
    """Run a PgBouncer before a server; give the folder of its socket, port 6432. Raises `NotHere`."""
    program, folder = pgbouncer_program(), _folder("evalhub-pool-")
    config, log = folder / "pgbouncer.ini", folder / "log"
    config.write_text(
        f"[databases]\n* = host={server.folder} user=evalhub\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
        f"unix_socket_dir = {folder}\nauth_type = any\npool_mode = {pool_mode}\ndefault_pool_size = {pool_size}\n"
        "max_client_conn = 500\n"
    )
    try:
        started = _unprivileged(folder)
        with log.open("ab") as stream:
            process = subprocess.Popen(
                [program, str(config)],
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **started,
            )
        try:
            address = f"postgresql://evalhub@/postgres?host={folder}&port=6432"
            _until(lambda: _accepts(address), process, log)
            yield folder
        finally:
            _ended(process, signal.SIGINT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str, name: str, template: str = "") -> str:
    """Make another database on the server of a DATABASE_URL, empty or a copy, and return its address."""
    before, _, after = url.rpartition("/postgres?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template or "template1"}"')
    return f"{before}/{name}?{after}"


def start_redis(
    folder: Path, program: str, socket: Path, config: Path | None = None, *, port: int = 0
) -> subprocess.Popen[bytes]:
    """Start a Redis or Valkey server on a Unix socket and return it when it answers."""
    log = folder / "redis.log"
    argv = [
        program,
        *([str(config)] if config else []),
        "--port",
        str(port),
        "--unixsocket",
        str(socket),
        "--dir",
        str(folder),
    ]
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
