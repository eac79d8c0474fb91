"""From where layer 1's metrics count as high in a project's diagnosis."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import quantiles

from msgspec import structs

from evalhub.teams.models import Project
from evaluators.statistics.run_diagnosis import DiagnosisThresholds
from evaluators.tool_use.diagnosis import Thresholds
from runs.models import Run, RunMeasure
from runs.results.counting import list_rule_versions

FEWEST_RUNS = 20
"""Earlier runs with layer 1 from which thresholds are taken."""
MOST_RUNS = 100
"""Newest earlier runs that count."""
_MEASURES = {"error_rate": "error_rate", "help_seeking": "help_calls", "total_commands": "commands"}
"""Thresholds that history sets, by their measure."""


def read_thresholds(project: Project | None, *, before: int | None = None) -> DiagnosisThresholds:
    """Return a project's thresholds: its own, else those of earlier runs, else the documented ones. One query.

    `before` is the run whose trials are diagnosed; later runs don't count.
    """
    if project is None:
        return DiagnosisThresholds()
    edited = {
        name: value for name, value in project.diagnosis_thresholds.items() if hasattr(Thresholds(), name)
    }
    history = _of_history(project, before) if set(_MEASURES.values()) - edited.keys() else {}
    runs = min((len(values) for values in history.values()), default=0)
    quartiles = (
        {name: _upper_quartile(name, values) for name, values in history.items()}
        if runs >= FEWEST_RUNS
        else {}
    )
    limits = structs.replace(Thresholds(), **{**quartiles, **edited})
    return DiagnosisThresholds(limits, runs if quartiles else 0, tuple(edited))


def _of_history(project: Project, before: int | None) -> dict[str, list[float]]:
    """Return the means of the newest runs by threshold, of those that count commands by the newest's rules."""
    # Asked of the runs, or SQLite sorts the measures of all.
    runs = Run.objects.filter(project=project)
    if before is not None:
        runs = runs.filter(pk__lt=before)
    rows = RunMeasure.objects.filter(
        run__in=runs.values("pk"),
        scenario=None,
        measure__layer="interaction",
        measure__name__in=_MEASURES,
    )
    columns = ("measure__name", "mean", "run__counting")
    newest = list(rows.order_by("-run_id").values_list(*columns)[: MOST_RUNS * len(_MEASURES)])
    rules = list_rule_versions(newest[0][2]) if newest else ""
    return _group((_MEASURES[name], mean) for name, mean, own in newest if list_rule_versions(own) == rules)


def _group(pairs: Iterable[tuple[str, float]]) -> dict[str, list[float]]:
    groups: defaultdict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        groups[name].append(value)
    return dict(groups)


def _upper_quartile(name: str, values: list[float]) -> float | int:
    """Return the value that three in four runs don't exceed, at least half and at most twice the documented one."""
    documented: float = getattr(Thresholds(), name)
    upper = min(max(quantiles(values, n=4, method="inclusive")[2], documented / 2), documented * 2)
    return max(1, round(upper)) if isinstance(documented, int) else round(upper, 3)
