"""Sessions in files of one JSON object: trajectories of mini-swe-agent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from evaluators.transcripts import mini_swe_agent
from evaluators.transcripts.sessions.session import (
    Problems,
    Session,
    UnreadableSession,
    only_session,
    span_of,
    whole_json,
)
from evaluators.transcripts.stream import mapping_or_empty

_MINI = re.compile(rb'"mini_version"\s*:|"trajectory_format"\s*:\s*"mini-swe-agent')


def matches_mini(head: bytes) -> bool:
    """Return whether a file begins like a trajectory of mini-swe-agent."""
    return head.lstrip()[:1] == b"{" and _MINI.search(head) is not None


def parse_mini(file: IO[bytes], problems: Problems) -> Iterator[Session]:
    """Yield the session of a trajectory of mini-swe-agent."""
    value = mapping_or_empty(whole_json(file))
    if not mini_swe_agent.is_trajectory(value):
        raise UnreadableSession("No `messages` of a trajectory of mini-swe-agent found.")
    read = mini_swe_agent.read_trajectory(value)
    times = span_of(event.timestamp for event in read.events)
    return only_session(Session("", read, mini_swe_agent.model_of(value), *times), "mini-swe-agent")
