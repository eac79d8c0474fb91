"""Take the check of tool-forge's third case format from stored scenarios."""

from django.db import migrations


def remove_included_tools(apps, schema_editor):
    versions = apps.get_model("scenarios", "ScenarioVersion").objects.using(schema_editor.connection.alias)
    for version in versions.filter(content__criteria__expect__has_key="tools_included").iterator():
        del version.content["criteria"]["expect"]["tools_included"]
        version.save(update_fields=["content"])


class Migration(migrations.Migration):
    dependencies = [("scenarios", "0001_release_0_1_2")]

    operations = [migrations.RunPython(remove_included_tools, migrations.RunPython.noop)]
