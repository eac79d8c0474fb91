"""Redis with Sentinel: the broker moves to another server, by hand or after a crash, and jobs run on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from evalhub.broker_address import BrokerAddress
from evalhub.health import broker_problem
from tests.services.certificates import Authority
from tests.services.redis_servers import HOST, MASTER, PASSWORD, SENTINEL_PASSWORD, RedisServers
from tests.waiting import until
from tests.worker.stand import Stand
from tests.worker.test_nothing_is_lost import files


@pytest.fixture
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServers]:
    folder = tmp_path / "redis"
    folder.mkdir()
    found = RedisServers(folder, Authority(folder) if getattr(request, "param", "") == "TLS" else None)
    yield found
    found.stop()


class Group:
    """A master, its replica and a Sentinel."""

    def __init__(self, servers: RedisServers) -> None:
        self.servers = servers
        self.master = servers.start_broker()
        self.replica = servers.start_broker(f"replicaof {HOST} {self.master}")
        until(self._replicates, 90)
        self.sentinel = servers.start_sentinel(self.master)

    @property
    def url(self) -> str:
        # The first Sentinel is dead: the next is asked.
        return f"sentinel://:{PASSWORD}@{HOST}:1/0;sentinel://{HOST}:{self.sentinel}"

    def _replicates(self) -> bool:
        with self.servers.client(self.replica) as client:
            return client.info("replication")["master_link_status"] == "up"

    def fail_over(self) -> None:
        """Ask the Sentinel for a failover; wait until the replica is the master."""
        with self.servers.client(self.sentinel, SENTINEL_PASSWORD) as client:
            until(lambda: _accepted(client), 90)
        until(lambda: self.servers.role(self.replica) == "master", 90)


def _accepted(client: redis.Redis) -> bool:
    try:
        client.execute_command("SENTINEL", "FAILOVER", MASTER)
    except redis.ResponseError:
        # It has not found the replica yet.
        return False
    return True


@pytest.fixture
def group(servers: RedisServers) -> Group:
    return Group(servers)


def use(settings: Any, group: Group) -> None:
    """Set what settings.py makes of the group's variables."""
    variables = group.servers.settings(group.url)
    settings.BROKER_URL = group.url
    settings.BROKER_OPTIONS = {
        "master": MASTER,
        "sentinel_password": SENTINEL_PASSWORD,
        "encrypted": group.servers.authority is not None,
        "ca": variables.get("EVALHUB_BROKER_CA", ""),
        "certificate": variables.get("EVALHUB_BROKER_CERTIFICATE", ""),
        "key": variables.get("EVALHUB_BROKER_KEY", ""),
    }
    BrokerAddress(settings.BROKER_URL, **settings.BROKER_OPTIONS).check()


def passed(stand: Stand, runs: int) -> bool:
    return bool(stand.one("SELECT count(*) FROM runs_run WHERE outcome = 'pass'") == runs)


@pytest.mark.parametrize("servers", ["TLS"], indirect=True)
@pytest.mark.starts_first
def test_runs_and_health_follow_a_failover_of_the_broker(
    stand: Stand, group: Group, tmp_path: Path, settings: Any
):
    use(settings, group)
    assert broker_problem() == ""
    stand.env |= group.servers.settings(group.url)
    # Without beat, a run is prepared only if the request's message arrives.
    worker = stand.start_worker(beat=False)
    arguments = files(tmp_path, "one")
    stand.manage("run_scenarios", *arguments)
    stand.until(lambda: passed(stand, 1), 90)
    group.fail_over()
    assert broker_problem() == ""
    stand.manage("run_scenarios", *arguments)
    stand.until(lambda: passed(stand, 2), 60)
    assert worker.poll() is None


@pytest.mark.starts_first
def test_a_run_passes_after_the_brokers_master_crashed(
    stand: Stand, group: Group, tmp_path: Path, settings: Any
):
    stand.env |= group.servers.settings(group.url)
    use(settings, group)
    worker = stand.start_worker()
    arguments = files(tmp_path, "one")
    stand.manage("run_scenarios", *arguments)
    stand.until(lambda: passed(stand, 1), 90)
    group.servers.kill(group.master)
    # No master now: the wake-up may be lost, and beat's next tick brings the run to a worker.
    stand.manage("run_scenarios", *arguments)
    until(lambda: group.servers.role(group.replica) == "master", 90)
    stand.until(lambda: passed(stand, 2), 60)
    assert worker.poll() is None
    assert broker_problem() == ""
    group.servers.kill(group.sentinel)
    assert broker_problem() == "The broker does not answer: MasterNotFoundError."
