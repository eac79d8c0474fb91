"""Find the run in which a scenario's current series of failures began."""

from __future__ import annotations

from collections.abc import Collection

from runs.models import Run, RunMeasure


def failing_since(run: Run, scenarios: Collection[int]) -> dict[int, int]:
    """Return for each scenario that lost trials in a run the first run of its series of failures.

    The series is of the run's target and model. One query, which is read back to the last run in which all passed.
    """
    rows = RunMeasure.objects.filter(
        scenario__in=scenarios,
        measure__layer="trial",
        measure__name="pass",
        run__target=run.target_id,
        run__model=run.model,
        run__lte=run.pk,
    )
    since: dict[int, int] = {}
    passed: set[int] = set()
    for scenario, key, mean in rows.order_by("-run").values_list("scenario", "run", "mean").iterator():
        if scenario in passed:
            continue
        if mean < 1.0:
            since[scenario] = key
        elif key != run.pk:
            passed.add(scenario)
            if len(passed) == len(scenarios):
                break
    return since
