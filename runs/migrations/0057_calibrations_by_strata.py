"""Compute stored calibrations again: those of samples drawn by the judge's verdict had too narrow intervals."""

from collections import defaultdict

from django.db import migrations

from evaluators.statistics.calibration import Label, calibrate


def calibrate_again(apps, schema_editor):
    calibrations = apps.get_model('runs', 'JudgeCalibration').objects.all()
    items = apps.get_model('runs', 'RoundItem').objects.filter(round__is_stratified=True, passed__isnull=False)
    rounds = set(items.values_list('round__project', 'round__model', 'round__rubric'))
    for row in calibrations:
        if (row.project_id, row.model, row.rubric) in rounds:
            found = _calibration(apps, row)
            row.lower = min(found.true_positive.lower, found.true_negative.lower)
            row.save(update_fields=['lower'])


def _calibration(apps, row):
    drawn = apps.get_model('runs', 'RoundItem').objects.filter(
        round__project=row.project_id, round__model=row.model, round__rubric=row.rubric
    )
    labels, sizes = [], defaultdict(float)
    columns = ('passed', 'judge_passed', 'weight', 'round__is_stratified')
    for passed, judge, weight, is_stratified in drawn.values_list(*columns):
        stratum = judge if is_stratified else None
        sizes[stratum] += weight
        if passed is not None:
            labels.append(Label(passed, judge, weight, stratum))
    return calibrate(labels, sizes)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0056_small_changes'),
    ]

    operations = [
        migrations.RunPython(calibrate_again, migrations.RunPython.noop, elidable=True),
    ]
