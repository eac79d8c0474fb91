"""Runs of eval cases as the commands print and write them (tool-forge eval runner, Output Format)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runs.engine import run_here
from runs.exchange.exports.console import Terminal, print_digest, terminal_of
from runs.exchange.exports.document import run_digest
from runs.models import Run
from tests.builders import make_project, make_run, make_suite, make_target, make_trial, score
from tests.commands.calling import call
from tests.evaluators.grading.test_suite_summary import CASES, SAMPLE
from tests.runs.carrying import launch

pytestmark = pytest.mark.one_database

CASE = {
    "id": "case-1",
    "description": "says the number",
    "input": {"message": "Which number?"},
    "expect": {"responseContains": ["7"]},
}
TARGETS = """targets:
  - {name: seven, provider: mock, response: "7"}
  - {name: eight, provider: mock, response: "8, token=abcdefgh123"}
"""
HASHES = {"stale": True, "generated_hash": "abc123", "description_hash": "def456"}
MISMATCH = "Evals for get_weather generated against description hash abc123, current is def456."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "count.golden.json").write_text(json.dumps([CASE]))
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


def run(folder: Path, *words: str) -> Any:
    return call(
        "run_scenarios", str(folder / "count.golden.json"), "--targets", str(folder / "targets.yaml"), *words
    )


def weather(**changes: Any) -> Run:
    """Return a stored run of the contract's console sample."""
    version = make_suite(make_project(), [f"gs-get-weather-{number}" for number, *_ in CASES])
    version.suite.format = "tool_forge"
    version.suite.save()
    version.config = {"tool": "get_weather", "tier": "golden"}
    version.save()
    staleness = {**HASHES, "warnings": [MISMATCH]}
    stored = make_run(version, fingerprint={"staleness": staleness}, warnings=[MISMATCH], **changes)
    for number, description, milliseconds, error in CASES:
        detail = {"error": error, "assertions_run": 6, "assertions_skipped": 0, "all_failures": [error]}
        verdict = score("assertions", "verdict", float(not error), not error, detail=detail)
        trial = make_trial(
            stored, f"gs-get-weather-{number}", outcome="fail" if error else "pass",
            seconds=milliseconds / 1000, scores=[verdict],
        )  # fmt: skip
        trial.scenario_version.content = {**trial.scenario_version.content, "description": description}
        trial.scenario_version.save()
    return stored


class Screen:
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.django_db
class TestSummary:
    @pytest.mark.spec("tool-forge", "Summary for the console")
    def test_it_matches_the_contracts_sample_and_names_the_run(self) -> None:
        stored = weather()
        called = call("show_run", str(stored.pk))
        text, reference = called.out[: len(SAMPLE)], called.out[len(SAMPLE) :]
        assert text == SAMPLE
        assert re.fullmatch(rf"  run {stored.pk}: basics-\d+ v1 · on local\n+", reference)

    def test_the_reason_of_an_unfinished_run_is_reported(self) -> None:
        stored = weather(error="There is no seat.", cancelled=2)
        lines = print_digest(run_digest(stored.pk, most=60), Terminal()).splitlines()
        assert "  The run did not start: There is no seat." in lines
        assert any(line.endswith("trials were cancelled.") for line in lines)

    @pytest.mark.parametrize(("value", "colour"), [("", True), ("1", False)])
    def test_no_color_keeps_colours_out(
        self, monkeypatch: pytest.MonkeyPatch, value: str, colour: bool
    ) -> None:
        monkeypatch.setenv("NO_COLOR", value)
        monkeypatch.setenv("COLUMNS", "91")
        assert terminal_of(Screen()) == Terminal(91, colour)


@pytest.mark.django_db(transaction=True)
class TestOutputFolder:
    @pytest.mark.spec("tool-forge", "Written to disk after each run")
    def test_each_run_is_written_and_is_what_the_download_holds(self, folder: Path) -> None:
        called = run(
            folder, "--target", "seven", "--target", "eight", "--now", "--output-dir", str(folder / "o")
        )
        assert called.code == 1
        runs = Run.objects.order_by("pk")
        names = [f"count.golden.run-{stored.pk}.json" for stored in runs]
        assert sorted(path.name for path in (folder / "o").iterdir()) == sorted(names)
        for stored, name in zip(runs, names, strict=True):
            written = (folder / "o" / name).read_text()
            assert (
                written.rstrip()
                == call("export_run", str(stored.pk), "--format", "suite-result").out.rstrip()
            )
            assert "abcdefgh123" not in written

    def test_regressions_come_with_the_summary(self, folder: Path) -> None:
        """The contract counts passed and failed cases alone, also where the time limit changed."""
        run(folder, "--target", "seven", "--now")
        first = Run.objects.get().pk
        limits = ("--timeout-seconds", "77", "--baseline", str(first), "--fail-on-regression")
        called = run(folder, "--target", "eight", "--now", *limits)
        assert called.code == 3
        assert f"REGRESSIONS against {first} (1): case-1" in called.out
        assert "time limit" in called.out


@pytest.mark.django_db(transaction=True)
def test_each_run_is_reported_once_as_it_ends() -> None:
    project = make_project()
    for name in ("quick", "slow"):
        make_target(project, name)
    started = launch(targets=("quick", "slow"))
    quick, slow = started.runs.order_by("pk")
    reported: list[tuple[int, bool]] = []
    Run.objects.filter(pk=quick.pk).update(state="finished")

    def ended(run_id: int) -> None:
        reported.append((run_id, run_here.open_runs(started).exists()))
        Run.objects.filter(pk=slow.pk).update(state="finished")

    run_here.wait_for(started, ended)
    assert reported == [(quick.pk, True), (slow.pk, False)]


@pytest.mark.django_db(transaction=True)
class TestSeedManifest:
    """The nearest one counts: that of the run, of the suite, of the project."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        case = {**CASE, "expect": {"responseContains": ["{{seed:number}}"]}}
        (tmp_path / "count.golden.json").write_text(json.dumps([case]))
        (tmp_path / "targets.yaml").write_text(TARGETS)
        for number in ("6", "7", "8"):
            (tmp_path / f"{number}.json").write_text(json.dumps({"number": number}))
        call("set_seed_manifest", str(tmp_path / "7.json"))
        return tmp_path

    def test_the_projects_manifest_is_the_default(self, folder: Path) -> None:
        assert run(folder, "--target", "seven", "--now").code == 0
        assert run(folder, "--target", "eight", "--now").code == 1

    def test_the_suites_comes_before_the_projects(self, folder: Path) -> None:
        (folder / "seed-manifest.json").write_text('{"number": "8"}')
        assert run(folder, "--target", "eight", "--now").code == 0

    @pytest.mark.spec("tool-forge", "Where the seed manifest is")
    def test_the_runs_comes_before_all(self, folder: Path) -> None:
        (folder / "seed-manifest.json").write_text('{"number": "6"}')
        assert run(folder, "--target", "eight", "--now", "--seed-manifest", str(folder / "8.json")).code == 0

    def test_a_run_keeps_what_it_was_given(self, folder: Path) -> None:
        run(folder, "--target", "seven", "--now")
        assert call("set_seed_manifest").code == 0
        assert Run.objects.get().options["seed"] == {"number": "7"}
        run(folder, "--target", "seven", "--now")
        assert Run.objects.latest("pk").options["seed"] is None

    def test_a_file_that_is_not_json_is_refused(self, folder: Path) -> None:
        called = call("set_seed_manifest", str(folder / "targets.yaml"))
        assert called.code == 2
        assert "is not JSON" in called.err


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("check_scenarios", {"expect": None}),
        ("check_scenarios", {"expect": {"responseContains": ["7"], "responseContans": ["8"]}}),
        ("import_scenarios", {"expect": None}),
        ("run_scenarios", {"expect": None}),
    ],
    ids=["nothing expected", "an unknown key", "import", "run"],
)
def test_strict_refuses_what_is_a_hint_otherwise(folder: Path, command: str, changes: dict[str, Any]) -> None:
    case = {name: value for name, value in {**CASE, **changes}.items() if value is not None}
    file = folder / "count.golden.json"
    file.write_text(json.dumps([case]))
    words = [command, str(file)]
    if command == "run_scenarios":
        words += ["--targets", str(folder / "targets.yaml"), "--target", "seven", "--now"]
    assert call(*words).code == 0
    assert call(*words, "--strict").code == 2
