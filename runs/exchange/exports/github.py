"""What a job of GitHub Actions gets beside files: step outputs, and annotations of the scenarios that broke."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluators.statistics.measure_change import ChangeVerdict
from runs.exchange.exports.document import first_trials
from runs.exchange.exports.files import named_in_errors
from runs.models import Run
from runs.results.failure_reasons import trial_reasons
from scenarios.annotations import MOST, Annotation, on_disk
from scenarios.models import SuiteEntry

NO_VERDICT = "none"
_BY_URGENCY = (
    ChangeVerdict.REGRESSED.value,
    NO_VERDICT,
    ChangeVerdict.NOT_COMPARABLE.value,
    ChangeVerdict.TOO_LITTLE.value,
)
"""The launch has the first of these verdicts that any of its runs has, else its first run's."""


def write_outputs(documents: Sequence[Mapping[str, Any]], deciding: int) -> None:
    """Append verdict, pass rate (0 to 1), cost in USD and run ids to the file that $GITHUB_OUTPUT names, if it is set.

    The first `deciding` runs give verdict and pass rate. Raises `NotWritable`.
    """
    place = os.environ.get("GITHUB_OUTPUT", "")
    if not place:
        return
    runs = [each["run"] for each in documents]
    lines = [f"{name}={value}\n" for name, value in outputs(runs, deciding).items()]
    path = Path(place)
    with named_in_errors(path), path.open("a", encoding="utf-8") as stream:
        stream.writelines(lines)


def outputs(runs: Sequence[Mapping[str, Any]], deciding: int) -> dict[str, str]:
    """Return the outputs of a launch's runs by name; empty texts for what is unknown."""
    verdicts = [run["verdict"] or NO_VERDICT for run in runs[:deciding]]
    rates = [run["pass_rate"] for run in runs[:deciding] if run["pass_rate"] is not None]
    costs = [run["cost_usd"] for run in runs if run["cost_usd"] is not None]
    return {
        "verdict": next((each for each in _BY_URGENCY if each in verdicts), verdicts[0]),
        "pass_rate": f"{fmean(rates):.4f}" if rates else "",
        "cost_usd": f"{sum(costs):.6f}" if costs else "",
        "run_id": ",".join(run["uuid"] for run in runs),
        "run": ",".join(str(run["id"]) for run in runs),
    }


def scenario_files(runs: Iterable[Run], roots: Sequence[str]) -> dict[int, dict[str, tuple[str, int]]]:
    """Return the file and line of each run's scenarios by key, as paths in the checkout. A query for each run."""
    return {run.pk: _files(run, roots) for run in runs}


def _files(run: Run, roots: Sequence[str]) -> dict[str, tuple[str, int]]:
    columns = ("scenario__key", "content__file", "content__line")
    entries = SuiteEntry.objects.filter(suite_version=run.suite_version_id)
    rows = entries.values_list(*(f"scenario_version__{each}" for each in columns))
    return {key: (on_disk(file, roots), line or 1) for key, file, line in rows if file}


def broken_scenarios(document: Mapping[str, Any], files: Mapping[str, tuple[str, int]]) -> list[Annotation]:
    """Return an annotation for each scenario that fails or hits errors, the regressed ones first."""
    run, reasons = document["run"], _reasons(first_trials(document))
    broke = [key for measure in run["measures"][:1] for key in measure["broke"]]
    known = [key for key in [*broke, *run["regressions"], *reasons] if key in files]
    return [
        Annotation(*files[key], _message(run, key, reasons.get(key, ())))
        for key in list(dict.fromkeys(known))[:MOST]
    ]


def _reasons(trials: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        if trial["outcome"] in ("fail", "error"):
            reasons.setdefault(trial["scenario"], []).extend(trial_reasons(trial))
    return {key: list(dict.fromkeys(own)) for key, own in reasons.items()}


def _message(run: Mapping[str, Any], key: str, reasons: Sequence[str]) -> str:
    state = f"no longer passes (baseline: run {run['baseline']})" if key in run["regressions"] else "fails"
    return f"{key} on {run['target']} {state}." + "".join(f" {each}" for each in reasons[:3])
