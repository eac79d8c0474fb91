from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def carry_over(apps: Any, schema_editor: Any) -> None:
    """Store what alerts name, and call alerts suspected that nothing has decided."""
    models_of = {name: apps.get_model("runs", name) for name in ("Alert", "Change")}
    alerts = models_of["Alert"].objects.using(schema_editor.connection.alias)
    changes = models_of["Change"].objects.using(schema_editor.connection.alias)
    alerts.filter(evidence="confirming").update(evidence="suspected")
    # Fresh trials that couldn't decide had no tests.
    alerts.filter(evidence="not_confirmed", fresh=[]).update(evidence="suspected")
    alerts.filter(kind="drift").update(evidence="confirmed")
    of_suite = changes.filter(scenario=None, measure__layer="trial", measure__name="pass")
    for alert in alerts.exclude(kind="drift").only("pk", "run").iterator():
        detail = of_suite.filter(run=alert.run_id).values_list("detail", flat=True).first()
        if named := (detail or {}).get("broke"):
            alerts.filter(pk=alert.pk).update(named=named)


KINDS = [
    ("regression", "Regression"),
    ("drift", "Drift"),
    ("after_change", "Worse after a change"),
    ("dearer", "Dearer"),
    ("slower", "Slower"),
]


class Migration(migrations.Migration):
    dependencies = [("runs", "0069_retests")]

    operations = [
        migrations.AddField(
            "alert",
            "named",
            models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.AlterField(
            "alert",
            "run",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="alerts",
                to="runs.run",
            ),
        ),
        migrations.AlterField(
            "alert",
            "kind",
            models.CharField(choices=KINDS, db_default="regression", default="regression", max_length=12),
        ),
        migrations.RunPython(carry_over, migrations.RunPython.noop),
    ]
