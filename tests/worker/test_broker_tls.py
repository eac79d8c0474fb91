"""A broker that speaks TLS and asks for client certificates: workers, requests and the health check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings

from evalhub.health import broker_problem
from tests.requirements import missing
from tests.services.certificates import Authority
from tests.services.redis_servers import HOST, PASSWORD, RedisServers
from tests.services.servers import NotHere
from tests.worker.stand import Stand
from tests.worker.test_nothing_is_lost import files

pytestmark = [pytest.mark.slow, pytest.mark.own_servers]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[RedisServers]:
    folder = tmp_path / "tls"
    folder.mkdir()
    found = RedisServers(folder, Authority(folder))
    yield found
    found.stop()


@pytest.fixture
def address(servers: RedisServers) -> str:
    try:
        return f"rediss://:{PASSWORD}@{HOST}:{servers.start_broker()}/0"
    except NotHere as error:
        missing("redis", str(error))


def use(settings: django_settings, variables: dict[str, str], **changed: str) -> None:
    """Set what settings.py makes of these variables."""
    names = {
        "ca": "EVALHUB_BROKER_CA",
        "certificate": "EVALHUB_BROKER_CERTIFICATE",
        "key": "EVALHUB_BROKER_KEY",
    }
    settings.BROKER_URL = variables["EVALHUB_BROKER_URL"]
    settings.BROKER_OPTIONS = {name: variables[variable] for name, variable in names.items()} | changed


def test_a_run_passes_over_tls_with_client_certificates(stand: Stand, servers, address, tmp_path: Path):
    stand.env |= servers.settings(address)
    # Without beat, a run is prepared only if the request's message arrives.
    stand.start_worker(beat=False)
    stand.manage("run_scenarios", *files(tmp_path, "one"))
    stand.until(lambda: stand.one("SELECT outcome FROM runs_run") == "pass", 40)


def test_the_health_check_reaches_a_broker_with_tls(servers, address, settings):
    use(settings, servers.settings(address))
    assert broker_problem() == ""


def test_a_broker_of_a_strange_authority_is_refused(servers, address, settings, tmp_path: Path):
    use(settings, servers.settings(address), ca=str(Authority(tmp_path, "stranger").path))
    assert broker_problem() == "The broker does not answer: ConnectionError."


def test_a_client_without_a_certificate_is_refused(servers, address, settings):
    use(settings, servers.settings(address), certificate="", key="")
    assert broker_problem() == "The broker does not answer: ConnectionError."
