"""A hundred generated conversations of codex, Claude Code and opencode with a server that misbehaves."""

from __future__ import annotations

import pytest

from tests.real_agents.conversations import play
from tests.real_agents.real import KEY, PROGRAMS
from tests.requirements import missing
from tests.static_files import plain_static_files  # noqa: F401  # a fixture

pytestmark = pytest.mark.one_database

COUNTS = {"codex": 34, "claude_code": 33, "opencode": 33}
SEED = 2026


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.timeout(1800)
@pytest.mark.django_db(transaction=True)
def test_counts_equal_the_servers_own_log(kind, monkeypatch, settings):
    if not (PROGRAMS / "codex").exists():
        missing("agents", "The agents are not installed: run `make agents`.")
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    settings.EGRESS = "full"
    played = play(kind, COUNTS[kind], SEED)
    wrong = {
        each.number: (trial.error, dict(counted - by_log), dict(by_log - counted), each.turns)
        for each, trial, counted, by_log in played
        if trial.error or counted != by_log
    }
    assert wrong == {}
    assert sum(sum(by_log.values()) for *_, by_log in played) > 2 * COUNTS[kind]
