"""A broker that a Sentinel names: workers, requests and the health check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evalhub.health import broker_problem
from tests.requirements import missing
from tests.services.redis_servers import HOST, MASTER, PASSWORD, RedisServers
from tests.services.servers import NotHere
from tests.worker.stand import Stand
from tests.worker.test_nothing_is_lost import files

pytestmark = [pytest.mark.slow, pytest.mark.own_servers]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[RedisServers]:
    found = RedisServers(tmp_path / "redis")
    yield found
    found.stop()


def test_a_run_passes_with_a_broker_that_a_sentinel_names(stand: Stand, servers, tmp_path: Path, settings):
    try:
        sentinel = servers.start_sentinel(servers.start_broker())
    except NotHere as error:
        missing("redis", str(error))
    # The first Sentinel is dead: the next is asked.
    address = f"sentinel://:{PASSWORD}@{HOST}:1/0;sentinel://:{PASSWORD}@{HOST}:{sentinel}/0"
    settings.BROKER_URL, settings.BROKER_OPTIONS = address, {"master": MASTER}
    assert broker_problem() == ""
    stand.env |= servers.settings(address)
    # Without beat, a run is prepared only if the request's message arrives.
    stand.start_worker(beat=False)
    stand.manage("run_scenarios", *files(tmp_path, "one"))
    stand.until(lambda: stand.one("SELECT outcome FROM runs_run") == "pass", 60)
    servers.kill(sentinel)
    assert broker_problem().startswith("The broker does not answer: ")
