from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from evaluators.model import CompletionError, CompletionRequest, Usage
from runs.errors import ProviderError
from runs.targets.definitions import define, resolve_definition
from runs.targets.providers.base import Invocation, Provider
from runs.targets.providers.mock import complete_with_mock
from runs.targets.providers.registry import make_provider
from runs.targets.providers.replay import complete_with_replay
from tests.runs.containments import containment
from tests.runs.targets.providers.invocations import invocation_of

pytestmark = pytest.mark.one_database


def provider(kind: str, base_folder: str = "", **fields) -> Provider:
    definition = define({"name": "t", "provider": kind, **fields})
    return make_provider(resolve_definition(definition, {}, base_folder=base_folder), containment())


def invocation(folder: Path, key: str = "k", **changes) -> Invocation:
    return invocation_of("do", key, folder, folder, 5.0, **changes)


def test_the_mock_answers(tmp_path):
    recording = provider("mock", response="hi", exit_code=2, input_tokens=3).invoke(invocation(tmp_path))
    assert (recording.answer, recording.raw, recording.exit_code) == ("hi", b"hi", 2)
    assert recording.usage == Usage(3, 0)


def test_the_mock_has_a_trace(tmp_path):
    trace = [{"type": "tool_call", "name": "search"}]
    recording = provider("mock", trace=trace).invoke(invocation(tmp_path))
    assert (recording.parser, json.loads(recording.raw)) == ("trace", trace)


@pytest.mark.parametrize("delay", [{"delayMs": 60}, {"delay_min_ms": 50, "delay_max_ms": 70}])
def test_the_mock_waits_for_its_delay(tmp_path, delay):
    began = time.monotonic()
    recording = provider("mock", **delay).invoke(invocation(tmp_path))
    assert 0.05 <= recording.seconds <= time.monotonic() - began < 10


def test_the_mock_stops_when_it_is_cancelled(tmp_path):
    recording = provider("mock", delay_ms=60_000).invoke(invocation(tmp_path, cancelled=lambda: True))
    assert recording.cancelled


def test_the_mock_costs_next_to_nothing(tmp_path):
    mock, task = provider("mock"), invocation(tmp_path)
    began = time.process_time()
    for _ in range(1000):
        mock.invoke(task)
    assert time.process_time() - began < 0.1


def test_the_mock_can_judge():
    complete = complete_with_mock(
        resolve_definition(define({"name": "j", "provider": "mock", "response": "{}"}), {})
    )
    assert complete(CompletionRequest(user="?")).text == "{}"


@pytest.mark.parametrize("path", ["a.jsonl", {"k": "a.jsonl"}], ids=["one", "map"])
def test_it_replays_a_recording(tmp_path, path):
    (tmp_path / "a.jsonl").write_bytes(b"{}\n\xff")
    replay = provider(
        "replay", str(tmp_path), path=path, parser="codex", response="done", exit_code=1, timed_out=True
    )
    recording = replay.invoke(invocation(tmp_path))
    assert (recording.raw, recording.parser, recording.answer) == (b"{}\n\xff", "codex", "done")
    assert (recording.exit_code, recording.timed_out) == (1, True)
    assert replay.check().available


def test_it_replays_what_lies_in_the_workspace(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    assert provider("replay", path="a.txt").invoke(invocation(tmp_path)).raw == b"x"


def test_a_replay_judges_each_scenario_by_its_recording(tmp_path):
    (tmp_path / "a.txt").write_text('{"scores": {}}\n')
    given = {"name": "j", "provider": "replay", "path": {"k": "a.txt", "l": "gone"}}
    ask = complete_with_replay(
        resolve_definition(define(given), {}, base_folder=str(tmp_path)), containment()
    )
    assert ask(CompletionRequest(user="?", key="k")).text == '{"scores": {}}'
    for key in ("l", "m"):
        with pytest.raises(CompletionError, match="has no recording"):
            ask(CompletionRequest(user="?", key=key))
    unplaced = complete_with_replay(resolve_definition(define(given), {}), containment())
    with pytest.raises(CompletionError, match="has no workspace"):
        unplaced(CompletionRequest(user="?", key="k"))


@pytest.mark.parametrize("path", ["gone", {"other": "gone"}], ids=["no file", "no entry"])
def test_a_missing_recording_is_an_error(tmp_path, path):
    replay = provider("replay", str(tmp_path), path=path)
    with pytest.raises(ProviderError, match="has no recording") as caught:
        replay.invoke(invocation(tmp_path))
    assert caught.value.kind == "configuration"
    assert not replay.check().available
