"""The tool and its command pattern are no part of the task: stored tasks are hashed again."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from scenarios.hashing import task_fixture_hash, task_hash
from scenarios.spec import ScenarioSpec
from scenarios.storing import unpack


def hash_again(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Write the task's hash and the pattern of every stored scenario version. Guidance is in no stored fixture."""
    versions = apps.get_model("scenarios", "ScenarioVersion").objects
    fixtures = apps.get_model("scenarios", "Fixture").objects
    last, files = None, ()
    for version in versions.order_by("fixture", "pk").iterator(chunk_size=200):
        if version.fixture_id != last:
            last = version.fixture_id
            files = unpack(bytes(fixtures.get(pk=last).archive)) if last else ()
        spec = ScenarioSpec.model_validate(version.content)
        tool = spec.criteria.tool
        version.task_hash = task_hash(spec, task_fixture_hash(files, tool) if last else "")
        version.command_pattern = tool.command_pattern if tool else ""
        version.save(update_fields=["task_hash", "command_pattern"])


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="scenarioversion",
            name="command_pattern",
            field=models.TextField(blank=True, default=""),
        ),
        migrations.RunPython(hash_again, migrations.RunPython.noop),
    ]
