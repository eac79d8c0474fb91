"""What was edited between two runs in the targets that they asked, as tasks or as judges."""

from __future__ import annotations

from typing import Any

from runs.models import Run, TargetVersion
from runs.warehouse.differences import Difference, definition_differences


def edited(base: Run, new: Run) -> list[Difference]:
    """Return what was edited in the runs' target and in their judges. One query, two where the target was edited."""
    return [*_in_target(base, new), *_in_judges(base, new)]


def _in_target(base: Run, new: Run) -> list[Difference]:
    before, after = base.target_version_id, new.target_version_id
    if base.target_id != new.target_id or before is None or after is None or before == after:
        return []
    found = dict(TargetVersion.objects.filter(pk__in=(before, after)).values_list("pk", "definition"))
    return definition_differences("Target's", found[before], found[after])


def _in_judges(base: Run, new: Run) -> list[Difference]:
    """Return what was edited in the judges that both runs could ask."""
    found: dict[int, dict[str, dict[str, Any]]] = {base.pk: {}, new.pk: {}}
    columns = ("run_id", "targetversion__target__name", "targetversion__definition")
    for run, name, definition in Run.judge_versions.through.objects.filter(run__in=found).values_list(
        *columns
    ):
        found[run][name] = definition
    before, after = found[base.pk], found[new.pk]
    several = len(before | after) > 1
    return [
        each
        for name in sorted(before.keys() & after.keys())
        for each in definition_differences(
            f"Judge {name}'s" if several else "Judge's", before[name], after[name]
        )
    ]
