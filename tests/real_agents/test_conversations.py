"""A few generated conversations with a server that misbehaves; `make test-all PART=slow` plays a hundred."""

from __future__ import annotations

import pytest

from tests.real_agents.conversations import play
from tests.real_agents.real import AGENTS, KEY
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.xdist_group("trials")
SEED = 4


@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
def test_counts_equal_the_servers_own_log(kind, monkeypatch, settings):
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    settings.EGRESS = "full"
    for each, trial, counted, by_log in play(kind, 4, SEED):
        assert (trial.run.error, trial.error) == ("", ""), each
        assert counted == by_log, each
