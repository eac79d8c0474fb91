"""Several hosts in DATABASE_URL: parsed as libpq takes them, and a dead one is passed over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from evalhub import environment
from evalhub.web.example_agent import free_port
from tests.requirements import missing
from tests.services.servers import NotHere, postgres_server

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql://u@/name?host=/run/pg", "/run/pg", ""),
        ("postgresql://u@one/name", "one", ""),
        ("postgresql://u:a%2Cb@one:5433/name", "one", "5433"),
        ("postgresql://u@one,two/name", "one,two", ""),
        ("postgresql://u@one:5433,Two/name", "one,Two", "5433,5432"),
        ("postgresql://u@[::1]:1,[fd00::2]:2/name", "::1,fd00::2", "1,2"),
        ("postgresql://u@%2Frun%2Fpg,two:1/name", "/run/pg,two", "5432,1"),
        ("postgresql://u@/name?host=one,two&port=1,2", "one,two", "1,2"),
    ],
)
def test_hosts_and_ports_are_those_of_libpq(url, host, port):
    found = environment.parse_database_url(url)
    assert (found["HOST"], found["PORT"]) == (host, port)


def test_options_of_libpq_pass_through():
    found = environment.parse_database_url(
        "postgresql://u@one,two/name?target_session_attrs=read-write&connect_timeout=3"
    )
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"
    assert found["OPTIONS"]["connect_timeout"] == "3"


@pytest.mark.parametrize("hosts", ["one:port", "one:0", "one:65536", "one,,two", "[::1"])
def test_hosts_that_are_none_are_refused_without_the_password(hosts):
    with pytest.raises(ImproperlyConfigured, match="has a host or port that is none") as refused:
        environment.parse_database_url(f"postgresql://u:hunter2@{hosts}/name")
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.own_servers
def test_a_dead_first_host_is_passed_over(tmp_path: Path):
    try:
        with postgres_server(port := free_port()) as server:
            assert server.port == port
            url = f"postgresql://evalhub@127.0.0.1:1,127.0.0.1:{port}/postgres"
            done = subprocess.run(
                [sys.executable, "manage.py", "migrate", "--plan"],
                cwd=ROOT,
                env={
                    "PATH": "/usr/bin:/bin",
                    "EVALHUB_DATA": str(tmp_path),
                    "EVALHUB_SECRET_KEY": "s" * 50,
                    "EVALHUB_BROKER_URL": "redis://127.0.0.1:1/0",
                    "DATABASE_URL": f"{url}?target_session_attrs=read-write&connect_timeout=3",
                },
                capture_output=True,
                text=True,
            )
    except NotHere as error:
        missing("postgres", str(error))
    assert done.returncode == 0, done.stderr
    assert "runs.0001_" in done.stdout
