"""Every trial ends up recorded exactly once, and no cap is ever exceeded, whatever happens to the processes."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.worker.stand import Stand, kill_group

SCENARIO = (
    "name: {name}\ndescription: Nothing to do.\ntask:\n  prompt: Do nothing.\nevaluation:\n  gates: []\n"
)


def files(folder: Path, *names: str, **target: Any) -> list[str]:
    """Write a suite and a targets file; return them as arguments of run_scenarios."""
    suite = folder / "nothing"
    suite.mkdir()
    for name in names:
        (suite / f"{name}.yaml").write_text(SCENARIO.format(name=name))
    fields = "".join(f"    {name}: {value}\n" for name, value in target.items())
    (folder / "targets.yaml").write_text(f"targets:\n  - name: m\n    provider: mock\n{fields}")
    return [str(suite), "--targets", str(folder / "targets.yaml"), "--target", "m", "--json"]


def moment(value: Any) -> float:
    return (value if isinstance(value, datetime) else datetime.fromisoformat(f"{value}+00:00")).timestamp()


def greatest_overlap(spans: list[tuple[Any, Any]]) -> int:
    """Return how many of these spans there were at once, at most."""
    steps = [(moment(started), 1) for started, _ in spans] + [(moment(finished), -1) for _, finished in spans]
    # One that ends in the microsecond in which the next begins is over.
    return max(accumulate(step for _, step in sorted(steps)))


@pytest.mark.slow
def test_trials_survive_killed_workers_and_a_killed_broker(stand: Stand, tmp_path: Path):
    arguments = files(tmp_path, "one", "two", delay_ms=400, workers=4)
    worker = stand.start_worker()
    stand.manage("run_scenarios", *arguments, "--trials", "30")

    def done() -> int:
        return int(stand.one("SELECT count(*) FROM runs_trial WHERE state = 'finished'"))

    for killing in range(3):
        stand.until(lambda: done() >= 4 + 8 * killing, 60)  # noqa: B023 (called at once)
        kill_group(worker)
        if killing == 1 and stand.broker is not None:
            kill_group(stand.broker)
            stand.start_broker()
        worker = stand.start_worker()
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 90)
    assert stand.rows("SELECT passed, failed, errors, cancelled, open FROM runs_run") == [(60, 0, 0, 0, 0)]
    assert done() == 60
    assert stand.one("SELECT count(*) FROM runs_transcriptrecord") == 60
    assert (
        stand.one(
            "SELECT sum(n) FROM runs_runmeasure r JOIN runs_measure m ON m.id = r.measure_id "
            "WHERE m.name = 'pass' AND r.scenario_id IS NOT NULL"
        )
        == 60
    )
    assert stand.one("SELECT max(starts) FROM runs_trial") > 1, "the killed workers held trials"


@pytest.mark.slow
def test_two_workers_never_exceed_the_cap_over_two_thousand_trials(stand: Stand, tmp_path: Path):
    # A lease that ends on a busy machine would let a fifth lane begin.
    stand.env["EVALHUB_LEASE_SECONDS"] = "20"
    arguments = files(tmp_path, "one", "two", workers=4)
    stand.start_worker(threads=4)
    stand.start_worker(threads=4, beat=False)
    stand.manage("run_scenarios", *arguments, "--trials", "1000", "--concurrency", "8")
    held: list[int] = []

    def closed() -> bool:
        held.append(stand.one("SELECT count(*) FROM runs_targetslot WHERE token <> ''"))
        held.append(stand.one("SELECT count(*) FROM runs_trial WHERE state = 'running'"))
        return bool(stand.one("SELECT state FROM runs_run") == "finished")

    stand.until(closed, 200)
    spans = stand.rows("SELECT started, finished FROM runs_trial")
    assert len(spans) == 2000
    assert stand.rows("SELECT passed, open FROM runs_run") == [(2000, 0)]
    assert 2 <= greatest_overlap(spans) <= 4
    assert max(held) <= 4
    assert stand.one("SELECT max(starts) FROM runs_trial") == 1, "no trial was carried twice"


@pytest.mark.slow
def test_two_hundred_small_runs_are_all_closed(stand: Stand, tmp_path: Path):
    arguments = files(tmp_path, "one", "two")
    stand.start_worker(threads=4)
    stand.start_worker(threads=4, beat=False)
    models = [word for n in range(200) for word in ("--model", f"m{n}")]
    asked = stand.manage("run_scenarios", *arguments, *models)
    assert len(asked["runs"]) == 200
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_run WHERE state = 'finished'") == 200, 200)
    assert stand.rows("SELECT sum(passed), sum(open), sum(trials) FROM runs_run") == [(400, 0, 400)]
    rolled_up = "SELECT count(DISTINCT run_id) FROM runs_runmeasure WHERE scenario_id IS NULL"
    assert stand.one(rolled_up) == 200


def test_a_stopping_worker_finishes_its_trials_only(stand: Stand, tmp_path: Path):
    arguments = files(tmp_path, "one", delay_ms=500, workers=2)
    worker = stand.start_worker()
    stand.manage("run_scenarios", *arguments, "--trials", "50")
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_trial WHERE state = 'finished'") >= 2, 90)
    began = time.monotonic()
    worker.terminate()
    worker.wait(20)
    assert time.monotonic() - began < 10
    states = dict(stand.rows("SELECT state, count(*) FROM runs_trial GROUP BY state"))
    assert states["queued"] > 30
    assert "running" not in states


@pytest.mark.slow
@pytest.mark.starts_first
def test_a_health_check_that_kills_its_worker_closes_the_run(stand: Stand, tmp_path: Path):
    stand.env["EVALHUB_SANDBOX"] = "off"
    group = tmp_path / "group"
    arguments = files(tmp_path, "one")
    (tmp_path / "nothing" / "one.yaml").write_text(
        f"{SCENARIO.format(name='one')}target: {{binary: sh, health_check: 'kill -9 -$(cat {group})'}}\n"
    )
    stand.manage("run_scenarios", *arguments)
    for _ in range(5):
        worker = stand.start_worker(threads=1)
        group.write_text(str(worker.pid))
        worker.wait(60)
    stand.start_worker(threads=1)
    stand.until(lambda: stand.one("SELECT state FROM runs_run") == "finished", 60)
    (row,) = stand.rows("SELECT outcome, starts, cancelled, open, error FROM runs_run")
    assert row[:4] == ("error", 5, 1, 0)
    assert "lost 5 times" in row[4]
