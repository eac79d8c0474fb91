"""Read which runs to compare from the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalhub.teams.models import Project
from evalhub.web.paging import key_of
from runs.compare.side_by_side import MOST_COMPARED
from runs.models import Run
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
