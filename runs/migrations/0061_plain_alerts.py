from collections.abc import Iterable
from typing import Any

from django.db import migrations


def lines_of(due: Any, tags: list[str]) -> Iterable[str]:
    """Yield what a note says of an alert's due date and tags."""
    if due:
        yield f"Due {due.isoformat()}."
    if tags:
        yield f"Tags: {', '.join(map(str, tags))}."


def append_to_notes(apps: Any, schema_editor: Any) -> None:
    """Write due dates and tags into notes, which stay."""
    alerts = apps.get_model("runs", "Alert").objects.using(schema_editor.connection.alias)
    for alert in alerts.exclude(due=None, tags=[]).only("note", "due", "tags").iterator():
        alert.note = "\n".join(filter(None, (alert.note, *lines_of(alert.due, alert.tags))))
        alert.save(update_fields=["note"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0060_looks")]

    operations = [
        migrations.RunPython(append_to_notes, migrations.RunPython.noop),
        migrations.RemoveField("alert", "due"),
        migrations.RemoveField("alert", "starred"),
        migrations.RemoveField("alert", "tags"),
        migrations.RemoveField("alert", "revision"),
    ]
