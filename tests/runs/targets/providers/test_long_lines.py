"""What programs print without line ends, or as JSON that grows when it is read."""

from __future__ import annotations

import tracemalloc

import pytest

from evalhub.lib.limits import LARGEST_FILE
from runs.targets.agents.agent_program import AgentLog
from runs.targets.agents.agent_session import CostWatch
from runs.targets.providers.recent_lines import SplitLines
from tests.linear_time import assert_linear_time

pytestmark = pytest.mark.one_database

CHUNK = 65_536


def test_lines_are_split_where_they_end():
    split = SplitLines()
    assert split.take(b"one") == []
    assert split.take(b" line\nanother\n\nlast") == [b"one line", b"another", b""]
    assert split.rest() == b"last"
    assert split.rest() == b""


@pytest.mark.hostile
@pytest.mark.parametrize(
    "sink", [AgentLog({}), AgentLog({}, format="json"), CostWatch("codex", 1.0, "", lambda model: None)]
)
def test_an_output_without_line_ends_is_read_in_linear_time(sink):
    def read(chunks):
        for _ in range(chunks):
            sink.take("stdout", b"x" * CHUNK)
        sink.take("stdout", b"\n")

    assert_linear_time(read, 256, 1_024)


@pytest.mark.hostile
@pytest.mark.parametrize("format", ["summary", "json"])
def test_a_long_event_takes_little_memory(format):
    tracemalloc.start()
    try:
        with AgentLog({}, format=format) as log:
            for _ in range(4 * LARGEST_FILE // CHUNK):
                log.take("stdout", b"[]," * (CHUNK // 3))
            log.take("stdout", b"[" * 900 + b"0," * 10_000 + b"0" + b"]" * 900)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.hostile
def test_nested_events_stay_short_in_a_log():
    event = b"[" * 900 + b"0," * 10_000 + b"0" + b"]" * 900
    with AgentLog({}, format="json") as log:
        log.take("stdout", event + b"\n" + b"[" * 100_000)
    assert len(log.content) < 20 * len(event)


@pytest.mark.hostile
def test_lines_that_report_a_cost_take_little_memory():
    tracemalloc.start()
    try:
        limit = CostWatch("codex", 1.0, "", lambda model: None)
        for _ in range(1000):
            limit.take("stdout", b'{"usage": "' + b"x" * CHUNK + b'"}\n')
        assert tracemalloc.get_traced_memory()[0] < 16 << 20
    finally:
        tracemalloc.stop()
