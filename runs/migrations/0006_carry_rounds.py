"""Name presets, arms and rounds of what is stored, and make old further runs rounds of their runs.

PostgreSQL changes no table whose rows the same transaction has moved, so tables change before and after.
"""

from collections.abc import Iterable
from typing import Any

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from evaluators.statistics.looks import compute_information, unplanned_levels
from evaluators.statistics.significance import Arms

OLD_OPTIONS = ("looks_with", "is_old_side", "is_previous_arm")
MAY_DIFFER = ("evalhub", "names", "sandbox", "staleness")


def carry_arms(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Name the arms of each launch, and what it is for."""
    runs, launches = (apps.get_model("runs", name).objects for name in ("Run", "Launch"))
    apps.get_model("runs", "Trial").objects.filter(is_retest=True).update(round=1)
    launches.exclude(about=None).update(preset="causes")
    known = {run.pk: run for run in runs.select_related("launch").only("launch", "options")}
    for run in known.values():
        request = run.launch.request
        looked, baseline = run.options.get("looks_with"), str(run.options.get("baseline") or "")
        beside = known.get(int(baseline)) if baseline.isdecimal() else None
        if run.launch.preset == "causes":
            run.arm = request.get("arm") or "control"
        elif run.options.get("is_previous_arm"):
            skill = known.get(looked)
            run.arm, run.reference_id = "previous", skill.options.get("looks_with") if skill else None
        elif run.options.get("is_old_side"):
            run.arm = "reference"
        elif looked or (beside and beside.launch_id == run.launch_id and beside.options.get("is_old_side")):
            run.arm, run.reference_id = "new", looked or beside.pk
        elif run.pk in (request.get("new"), request.get("old")):
            run.arm = "new" if run.pk == request["new"] else "old"
    for run in known.values():
        if run.reference_id not in known:
            run.reference_id = None
        if run.arm or any(name in run.options for name in OLD_OPTIONS):
            run.options = {name: value for name, value in run.options.items() if name not in OLD_OPTIONS}
            run.save(update_fields=["arm", "reference", "options"])
    of_runs = launches.filter(preset="")
    of_runs.filter(runs__options__lift=True).update(preset="lift")
    of_runs.filter(runs__arm="reference").update(preset="guidance")
    of_runs.filter(request__has_key="alert").update(preset="confirm")
    for launch in launches.filter(runs__options__until_decided=True).distinct():
        options = launch.runs.order_by("pk").first().options
        launch.stop = {"first": options.get("trials", 1), "most": options.get("max_trials")}
        launch.save(update_fields=["stop"])


def carry_extensions(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Make further runs of two compared runs rounds of these, where nothing changed meanwhile; others stay runs."""
    launches = apps.get_model("runs", "Launch").objects
    for launch in launches.filter(runs__more_of__isnull=False).distinct().order_by("pk"):
        further = list(launch.runs.select_related("more_of").order_by("pk"))
        if len(further) == 2 and all(map(_is_pooled, further)):
            _make_rounds(apps, launch, further)


def _is_pooled(run: Any) -> bool:
    if run.more_of is None or run.state != "finished" or run.error or run.more_of.state != "finished":
        return False
    both = [{**each.fingerprint, **dict.fromkeys(MAY_DIFFER)} for each in (run, run.more_of)]
    return bool(both[0] == both[1] and run.counting == run.more_of.counting)


def _make_rounds(apps: StateApps, launch: Any, further: Iterable[Any]) -> None:
    old, new = further
    base, compared = old.more_of, new.more_of
    measures, later = (apps.get_model("runs", name).objects for name in ("RunMeasure", "LaterMeasure"))
    counts = [_trials_by_scenario(measures, later, run) for run in (base, compared)]
    rounds = {}
    for run in (old, new):
        rounds[str(run.more_of_id)] = _move_trials(apps, run)
        for row in measures.filter(run=run).exclude(scenario=None):
            columns = {name: getattr(row, name) for name in ("scenario", "measure", "n", "mean", "m2", "passed")}
            later.create(run=run.more_of, **columns)
        spent = run.cost_usd or 0.0
        if run.cost_usd is not None and run.more_of.cost_usd is not None:
            run.more_of.cost_usd += spent
            run.more_of.retest_usd += spent
            run.more_of.save(update_fields=["cost_usd", "retest_usd"])
    after = [_trials_by_scenario(measures, later, run) for run in (base, compared)]
    at = [each for each in map(_information, (counts, after)) if each]
    looks = [{**look, "against": base.pk} for look in new.looks]
    if not looks and at:
        rate, table = unplanned_levels(at)
        shared = [(n, after[1][key]) for key, n in after[0].items() if key in after[1]]
        sums, most = (tuple(map(count, zip(*shared, strict=True))) for count in (sum, max))
        looks = [
            {
                "against": base.pk,
                "trials": sums,
                "most": most,
                "scenarios": len(shared),
                "fractions": (1.0, 1.0),
                "information": at[-1],
                "p": 1.0,
                "level": rate,
                "table_p": 1.0,
                "table_level": table,
                "decision": "limit",
                "undecided": [],
                "reason": "",
            }
        ]
    # The runs go with what is only theirs; their launch stays, about the run that was compared.
    for run in (old, new):
        run.delete()
    launch.preset, launch.about = "more", compared
    launch.request = {"base": base.pk, "rounds": rounds}
    launch.stop = {"first": old.options.get("trials", 1), "most": old.options.get("max_trials"), "ended": True}
    launch.stop |= {"looks": looks}
    launch.save()


def _move_trials(apps: StateApps, run: Any) -> int:
    """Give a further run's trials to its run; return their round."""
    trials = apps.get_model("runs", "Trial").objects
    kept = trials.filter(run=run.more_of)
    last = kept.aggregate(round=models.Max("round"), position=models.Max("position"))
    number, position = (last["round"] or 0) + 1, (last["position"] or 0) + 1
    indexes = dict(kept.values_list("scenario").annotate(models.Max("index")).order_by())
    for trial in trials.filter(run=run).order_by("position", "pk"):
        trial.index += indexes.get(trial.scenario_id, -1) + 1
        trial.position += position
        trial.run, trial.round = run.more_of, number
        trial.save(update_fields=["run", "round", "index", "position"])
    return number


def _trials_by_scenario(measures: Any, later: Any, run: Any) -> dict[int, int]:
    counts: dict[int, int] = {}
    for table in (measures, later):
        passes = table.filter(run=run, measure__layer="trial", measure__name="pass").exclude(scenario=None)
        for scenario, n in passes.values_list("scenario", "n"):
            counts[scenario] = counts.get(scenario, 0) + n
    return counts


def _information(sides: list[dict[int, int]]) -> tuple[float, float] | None:
    arms = [Arms(0, n, 0, sides[1][key]) for key, n in sides[0].items() if key in sides[1]]
    return (compute_information(arms), max(compute_information([each]) for each in arms)) if arms else None


class Migration(migrations.Migration):
    dependencies = [("runs", "0005_one_launch")]
    operations = [
        migrations.RunPython(carry_arms, migrations.RunPython.noop),
        migrations.RunPython(carry_extensions, migrations.RunPython.noop),
    ]
