"""Results on a worker's disk: they come back as they were, count only under their token, and only once."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from evaluators.grading.assertions import calls_of_transcript
from evaluators.grading.evaluate import Evaluation
from evaluators.model import Judging, Score, Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from runs.db.retry import LOG_SECONDS, Outage
from runs.engine import lanes, recording, unrecorded
from runs.engine.lanes import LanePool
from runs.engine.reaper import reap
from runs.models import Trial
from runs.results.files.artifacts import StoredFile
from runs.workers.claims import Claim
from tests.builders import make_project
from tests.runs.carrying import claimed, launch, lose, passed, running, shell_target, start, suite_of

pytestmark = pytest.mark.django_db(transaction=True)

STREAMS = Path(__file__).parents[2] / "files/streams"


@pytest.fixture(autouse=True)
def folder(settings, tmp_path: Path) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path / "unrecorded"


def whole_result() -> Any:
    """Return a result with every part, as a real agent's trial has it."""
    transcript = parse("codex", (STREAMS / "codex.jsonl").read_bytes(), b"")
    assert calls_of_transcript(transcript)
    judging = Judging(score=0.7, passed=True, model="m", rubric="r", reasoning="Good.")
    scores = (
        Score("gates", "file_exists", value=1.0, passed=True, detail={"path": "a"}),
        Score("judge", "rubric", value=0.7, passed=True, judging=judging),
    )
    return passed(
        transcript=transcript,
        interaction=analyse(transcript, Tool(binary="git"), completed=True),
        evaluation=Evaluation("pass", scores, 0.9, {"gates": 0.5}),
        usage=Usage(3, 4),
        answer="é ✓",
        artifacts=(StoredFile("transcript", "a" * 64, 12, "text/plain"),),
        detail={"notes": ["one"], "warnings": []},
        cost_usd=0.25,
    )


def left_by_a_process_that_ended(claim: Claim, result: Any) -> None:
    waiting = unrecorded.WaitingResult(claim, result)
    waiting.keep()
    assert waiting.is_kept
    content = waiting.path.read_bytes()
    waiting.drop()
    # The same without a lock, which ends with its process.
    waiting.path.write_bytes(content)


def test_a_whole_result_is_read_as_it_was():
    claim, result = claimed(running()), whole_result()
    left_by_a_process_that_ended(claim, result)
    (path,) = unrecorded.files_left()
    with unrecorded.take_file(path) as kept:
        assert kept is not None
        assert kept.claim == claim
        assert kept.result == result
    assert list(unrecorded.files_left()) == []


def test_what_a_process_left_is_recorded_once():
    run = running()
    left_by_a_process_that_ended(claimed(run), passed(answer="kept\ud800"))
    lanes.record_kept()
    lanes.record_kept()
    run.refresh_from_db()
    assert (run.passed, run.open) == (1, 1)
    assert Trial.objects.get(state="finished").answer == "kept?"
    assert list(unrecorded.files_left()) == []


def test_a_starting_worker_records_them_before_it_looks_for_lost_work():
    run = running(trials=1)
    claim = claimed(run)
    left_by_a_process_that_ended(claim, passed(answer="kept"))
    lose(claim)
    pool = LanePool()
    pool.start(1)
    try:
        assert reap()
    finally:
        pool.stop()
    trial = Trial.objects.get(pk=claim.trial_id)
    assert (trial.answer, trial.starts) == ("kept", 1)


def test_a_result_whose_trial_another_worker_has_is_discarded():
    run = running(trials=1)
    claim = claimed(run)
    left_by_a_process_that_ended(claim, passed())
    lose(claim)
    reap()
    again = claimed(run)
    assert again.trial_id == claim.trial_id
    lanes.record_kept()
    run.refresh_from_db()
    assert (run.passed, run.open) == (0, 2)
    assert recording.record_result(again, passed())
    assert list(unrecorded.files_left()) == []


def test_a_result_whose_process_lives_is_left_to_it():
    run = running()
    waiting = unrecorded.WaitingResult(claimed(run), passed())
    waiting.keep()
    lanes.record_kept()
    run.refresh_from_db()
    assert run.passed == 0
    assert waiting.path.exists()
    waiting.drop()
    assert not waiting.path.exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"claim": {}, "result": 3}'])
def test_a_file_that_holds_no_result_is_set_aside(folder: Path, content: bytes, caplog):
    folder.mkdir()
    (folder / "1-abc.json").write_bytes(content)
    lanes.record_kept()
    lanes.record_kept()
    assert [path.name for path in folder.iterdir()] == ["1-abc.unreadable"]
    assert len([line for line in caplog.messages if "is set aside" in line]) == 1


def test_a_lane_gives_way_when_nobody_answers_and_records_its_result():
    """The question whether to give way comes before recording; it used to wait for as long as recording may."""
    project = make_project()
    shell_target(project)
    run = launch(suite_of(project, a={"prompt": "sleep 1.2; echo done"}), targets=["shell"]).runs.get()
    start(run)
    asked: list[str] = []

    def fail_when_asked(execute: Any, sql: str, *rest: Any) -> Any:
        if 'FROM "runs_target"' in sql and "runs_targetslot" in sql:
            asked.append(sql)
            raise OperationalError("the connection is lost")
        return execute(sql, *rest)

    with connection.execute_wrapper(fail_when_asked):
        lanes.run_lane(run.pk)
    assert len(asked) == 1
    run.refresh_from_db()
    assert (run.passed, run.state) == (1, "finished")


def test_the_log_names_the_trials_that_wait_once_a_minute(caplog):
    now = 0.0
    seen = Outage(lambda: now)
    seen.note(OperationalError("connection refused"))
    seen.add(12)
    seen.add(7)
    now = LOG_SECONDS - 1
    seen.note(OperationalError("connection refused"))
    now = LOG_SECONDS
    seen.note(OperationalError("connection refused"))
    seen.remove(12)
    now = 2 * LOG_SECONDS
    seen.note(OperationalError("connection refused"))
    first = "The database is away, retrying: connection refused."
    assert caplog.messages == [
        first,
        f"{first} Results of 2 trials wait to be recorded: 7, 12.",
        f"{first} Results of 1 trial wait to be recorded: 7.",
    ]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
