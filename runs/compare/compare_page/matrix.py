"""Read from the address which runs to compare, and compare up to ten with the first one, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from evaluators.statistics.measure_change import MeasureChange
from runs.compare.compare_page.comparison import ComparedScenario, compare_trials, ended_trials
from runs.compare.measure_changes import HEADLINE, RunComparison, compare_with_first
from runs.compare.shown_changes import ComparedMeasure
from runs.compare.side_by_side import MOST_COMPARED, compared_measure, measures_with_cells
from runs.models import Run
from runs.results.comparability import outcomes_changed_since
from runs.results.run_list import runs_of


@dataclass(frozen=True)
class ChosenRuns:
    """The runs of a comparison, the base first, or why there is none."""

    runs: tuple[Run, ...] = ()
    problem: str = ""

    @property
    def numbers(self) -> str:
        return numbers_of([run.pk for run in self.runs])


def numbers_of(keys: Sequence[int]) -> str:
    """Return run numbers as the address takes them."""
    return ",".join(map(str, keys))


def chosen_runs(project: Project, numbers: str) -> ChosenRuns:
    """Return the project's runs of a comma-separated list of numbers, each once. One query."""
    words = list(dict.fromkeys(word.strip() for word in numbers.split(",") if word.strip()))
    if len(words) > MOST_COMPARED:
        return ChosenRuns(problem=f"You can compare at most {MOST_COMPARED} runs; {len(words)} are selected.")
    keys = {word: key_of(word) for word in words}
    if wrong := [word for word, key in keys.items() if not key]:
        return ChosenRuns(problem=f"“{wrong[0]}” is not a run number.")
    rows = runs_of(project).defer(None).select_related("target_version").filter(pk__in=keys.values())
    by_key = {run.pk: run for run in rows}
    if missing := [key for key in keys.values() if key not in by_key]:
        return ChosenRuns(problem=f"There is no run {missing[0]} in this project.")
    runs = tuple(by_key[key] for key in keys.values() if key)
    if sessions := [run for run in runs if run.suite.has_sessions]:
        return ChosenRuns(problem=f"Run {sessions[0].pk} holds sessions, which have no gates to compare.")
    if len(runs) == 1:
        return ChosenRuns(problem=f"Run {runs[0].pk} needs another run to be compared with.")
    return ChosenRuns(runs)


SUMMARY = (
    *HEADLINE,
    "trial/seconds",
    "trial/cost_usd",
    "trial/tokens_in",
    "trial/tokens_out",
    "interaction/total_commands",
)
"""The measures of the matrix."""


@dataclass(frozen=True)
class MatrixRun:
    """A column, with the addresses of its menu."""

    run: Run
    label: str
    """The agent program and model if the runs differ in these, else the run's number."""
    base_first: str
    """Run numbers with this one as the base; empty for the base."""
    left: str
    """Run numbers with this one a place to the left; empty if that makes it the base."""
    right: str
    without: str
    """Empty where fewer than two runs would be left."""
    comparable: int = 0
    common: int = 0

    @property
    def program_version(self) -> str:
        """Return what the agent program said of its version; empty if it has none."""
        return str(self.run.fingerprint.get("provider_version") or "")


@dataclass(frozen=True)
class MatrixScenario:
    """A scenario over the runs."""

    key: str
    cells: tuple[ComparedScenario, ...]
    """Each run against the base, which is the first."""

    @property
    def differs(self) -> bool:
        return any(cell.change in ("worse", "better", "added", "removed") for cell in self.cells)

    @property
    def worst(self) -> float:
        """Return the largest fall of the pass rate against the base."""
        return max((-cell.gain for cell in self.cells[1:] if cell.rates[1].n), default=0.0)


@dataclass(frozen=True)
class Matrix:
    """Content of the page that compares several runs."""

    columns: tuple[MatrixRun, ...]
    summary: tuple[tuple[ComparedMeasure, ...], ...]
    """Each measure over the runs: against the base, whose own value has no change."""
    scenarios: tuple[MatrixScenario, ...]

    @property
    def title(self) -> str:
        """Return what is compared: programs or models on a suite, or runs with the first one."""
        runs = [column.run for column in self.columns]
        several = len({run.suite_id for run in runs}) > 1
        if not several and len({run.target_id for run in runs}) == len(runs):
            return f"{len(runs)} agent programs on {runs[0].suite.name}"
        if not several and len({(run.target_id, run.model) for run in runs}) == len(runs):
            return f"{len(runs)} models on {runs[0].suite.name}"
        return f"{len(runs) - 1} runs compared with run {runs[0].pk}"

    @property
    def differing(self) -> tuple[MatrixScenario, ...]:
        """Return the scenarios in which a run differs from the base."""
        return tuple([row for row in self.scenarios if row.differs])


def compare_several_runs(runs: Sequence[Run]) -> Matrix:
    """Return runs beside each other, each against the first: headline measures, cost, time, tokens, and scenarios.

    Scenarios with the largest fall against the first run come first. Four to nine queries.
    """
    compared = compare_with_first(runs[0], runs[1:], SUMMARY)
    counts = [(0, 0), *((each.comparable, each.common) for each in compared)]
    return Matrix(_columns(runs, counts), _summary(runs, compared), _scenarios(runs))


def _summary(
    runs: Sequence[Run], compared: Sequence[RunComparison]
) -> tuple[tuple[ComparedMeasure, ...], ...]:
    """Return the measures of `SUMMARY` that a run has."""
    changes: list[dict[str, MeasureChange]] = [
        {},
        *(
            {
                change.measure: change
                for change in (*comparison.headline, *comparison.others)
                if change.scenarios
            }
            for comparison in compared
        ),
    ]
    rows = [
        tuple(
            compared_measure(measure, (cells[0], cell), of_run.get(str(measure)))
            for cell, of_run in zip(cells, changes, strict=True)
        )
        for measure, cells in measures_with_cells(runs)
        if str(measure) in SUMMARY
    ]
    return tuple(sorted(rows, key=lambda row: SUMMARY.index(row[0].name)))


def _scenarios(runs: Sequence[Run]) -> tuple[MatrixScenario, ...]:
    base, *_ = ended = list(ended_trials(runs).values())
    keys = dict.fromkeys(key for of_run in ended for key in of_run)
    reasons = ({}, *outcomes_changed_since(runs[0], runs[1:]))
    rows = [
        MatrixScenario(
            key,
            tuple(compare_trials(key, base, of_run, why) for of_run, why in zip(ended, reasons, strict=True)),
        )
        for key in keys
    ]
    return tuple(sorted(rows, key=lambda row: (not row.differs, -row.worst)))


def _columns(runs: Sequence[Run], counts: Sequence[tuple[int, int]]) -> tuple[MatrixRun, ...]:
    keys = [run.pk for run in runs]
    programs = [f"{run.target.name} · {run.model}" if run.model else run.target.name for run in runs]
    labels = programs if len(set(programs)) == len(runs) else [f"Run {key}" for key in keys]
    return tuple(
        MatrixRun(
            run,
            labels[at],
            numbers_of([keys[at], *keys[:at], *keys[at + 1 :]]) if at else "",
            _swap(keys, at - 1) if at > 1 else "",
            _swap(keys, at) if 0 < at < len(keys) - 1 else "",
            numbers_of([key for key in keys if key != run.pk]) if len(keys) > 2 else "",
            *counts[at],
        )
        for at, run in enumerate(runs)
    )


def _swap(keys: Sequence[int], at: int) -> str:
    """Return the numbers with those at this place and the next one swapped."""
    return numbers_of([*keys[:at], keys[at + 1], keys[at], *keys[at + 2 :]])
