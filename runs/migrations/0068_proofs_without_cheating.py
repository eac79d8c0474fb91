from typing import Any

from django.db import migrations, models

UNTRIED = "Unproved against the judge: no planted verdict was tried (--judge-attacks)."


def keep_what_null_agent_and_solution_proved(apps: Any, schema_editor: Any) -> None:
    """Turn *passes a cheating agent* into *proved*: that agent was tried only on proved scenarios."""
    proofs = apps.get_model("runs", "ScenarioProof").objects.using(schema_editor.connection.alias)
    proofs.filter(seal="passes_cheating").update(seal="proved", reason="")
    proved = proofs.filter(seal="proved")
    proved.filter(is_failure=True).update(is_failure=False)
    for proof in proved.filter(reason__endswith=UNTRIED).only("reason").iterator():
        proof.reason = proof.reason.removesuffix(UNTRIED).rstrip()
        proof.save(update_fields=["reason"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0067_no_verdicts_and_judges")]

    operations = [
        migrations.RunPython(keep_what_null_agent_and_solution_proved, migrations.RunPython.noop),
        migrations.RemoveField("scenarioproof", "cheating"),
        migrations.RemoveField("scenarioproof", "attacks"),
        migrations.RemoveField("scenarioproof", "fooled"),
        migrations.AlterField(
            "scenarioproof",
            "seal",
            models.CharField(
                choices=[
                    ("proved", "proved"),
                    ("unproved", "unproved"),
                    ("passes_without_agent", "passes without an agent"),
                    ("solution_fails", "solution fails"),
                ],
                max_length=20,
            ),
        ),
    ]
