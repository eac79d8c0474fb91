"""A big run leaves lanes to small ones, and short tasks never wait behind trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.worker.stand import Stand, kill_group

SCENARIO = "name: {name}\ndescription: Waits.\ntask:\n  prompt: Wait.\nevaluation:\n  gates: []\n"


def make_projects(stand: Stand, *slugs: str) -> None:
    making = "; ".join(f"Project.objects.create(slug={slug!r}, name={slug!r})" for slug in slugs)
    stand.manage("shell", "--no-imports", "-c", f"from evalhub.teams.models import Project; {making}")


def start_run(stand: Stand, folder: Path, project: str, *, trials: int, delay_ms: int, lanes: int) -> int:
    """Request a run in a project of its own; return its number."""
    suite = folder / project
    suite.mkdir()
    (suite / "one.yaml").write_text(SCENARIO.format(name="one"))
    targets = folder / f"{project}.targets.yaml"
    targets.write_text(f"targets:\n  - {{name: m, provider: mock, delay_ms: {delay_ms}}}\n")
    words: list[Any] = ["run_scenarios", suite, "--targets", targets, "--target", "m", "--json"]
    words += ["--project", project, "--trials", trials, "--concurrency", lanes]
    (number,) = stand.manage(*map(str, words))["runs"]
    return int(number)


@pytest.mark.slow
def test_a_small_run_begins_while_a_big_one_holds_every_lane(stand: Stand, tmp_path: Path):
    make_projects(stand, "big", "small")
    stand.start_worker(threads=4)
    big = start_run(stand, tmp_path, "big", trials=600, delay_ms=200, lanes=8)
    running = f"SELECT count(*) FROM runs_trial WHERE run_id = {big} AND state = 'running'"
    stand.until(lambda: stand.one(running) >= 4, 30)
    stand.until(lambda: stand.one("SELECT sum(capacity) FROM runs_worker") == 4, 30)
    small = start_run(stand, tmp_path, "small", trials=3, delay_ms=200, lanes=1)
    stand.until(lambda: stand.one(f"SELECT state FROM runs_run WHERE id = {small}") == "finished", 25)
    left = stand.one(f"SELECT open FROM runs_run WHERE id = {big}")
    assert left > 100, "the small run did not wait for the big one"
    stand.rows(f"UPDATE runs_run SET cancel_requested = TRUE WHERE id = {big} RETURNING id")


@pytest.mark.slow
def test_a_free_worker_finds_work_while_the_broker_is_away(stand: Stand, tmp_path: Path):
    make_projects(stand, "one")
    stand.start_worker(threads=1)
    stand.until(lambda: stand.one("SELECT count(*) FROM runs_worker") == 1, 30)
    assert stand.broker is not None
    kill_group(stand.broker)
    number = start_run(stand, tmp_path, "one", trials=1, delay_ms=1, lanes=1)
    stand.manage(
        "shell",
        "--no-imports",
        "-c",
        f"from runs.engine.preparation import prepare_run; prepare_run({number})",
    )
    stand.until(lambda: stand.one(f"SELECT state FROM runs_run WHERE id = {number}") == "finished", 30)
