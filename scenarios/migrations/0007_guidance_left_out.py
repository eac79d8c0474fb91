"""Take out of stored guidance what no agent gets of a skill, and hash what is left."""

from __future__ import annotations

from django.db import migrations, models

from scenarios.formats.agent_skills.skill_contents import remove_left_out
from scenarios.guidance import SKILLS
from scenarios.hashing import guidance_hash
from scenarios.storing import restore_documents


def leave_out(apps, schema_editor):
    """Move what stays out into `left_out`. Where two versions become equal, the oldest gets the hash.

    A later version that had this hash already gets the oldest one's in exchange; others keep theirs.
    """
    model = apps.get_model("scenarios", "Guidance")
    for pk in list(model.objects.order_by("suite_id", "number").values_list("pk", flat=True)):
        guidance = model.objects.get(pk=pk)
        files = restore_documents(guidance.files)
        laid = remove_left_out(files, repositories_of(apps, guidance))
        if laid == files:
            continue
        paths = {file.path for file in laid}
        guidance.left_out = [each for each in guidance.files if each["path"] not in paths]
        guidance.files = [each for each in guidance.files if each["path"] in paths]
        was, sha256 = guidance.sha256, guidance_hash(laid)
        other = model.objects.filter(suite_id=guidance.suite_id, sha256=sha256).exclude(pk=guidance.pk).first()
        guidance.sha256 = was if other and other.number < guidance.number else sha256
        if guidance.sha256 == sha256 and other:
            # One version has a hash at a time.
            model.objects.filter(pk=other.pk).update(sha256="")
        guidance.save(update_fields=["files", "left_out", "sha256"])
        if guidance.sha256 == sha256 and other:
            model.objects.filter(pk=other.pk).update(sha256=was)


def repositories_of(apps, guidance):
    """Return the folder of the skill that was uploaded as a repository's root; none if its files weren't kept."""
    skills = {each["path"].split("/")[2] for each in guidance.files if each["path"].startswith(f"{SKILLS}/")}
    uploads = apps.get_model("scenarios", "Upload").objects.filter(guidance_id=guidance.pk)
    sources = uploads.values_list("suite_version__source__files", flat=True)
    is_root = any(each["path"] == "SKILL.md" for files in sources for each in files or ())
    return {f"{SKILLS}/{name}" for name in skills} if is_root and len(skills) == 1 else set()


def put_back(apps, schema_editor):
    """Put the documents back; the hashes of what is laid stay."""
    for guidance in apps.get_model("scenarios", "Guidance").objects.exclude(left_out=[]).iterator():
        guidance.files = sorted([*guidance.files, *guidance.left_out], key=lambda each: each["path"])
        guidance.save(update_fields=["files"])


class Migration(migrations.Migration):

    dependencies = [
        ('scenarios', '0006_suite_sources'),
    ]

    operations = [
        migrations.AddField(
            model_name='guidance',
            name='left_out',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.RunPython(leave_out, put_back),
    ]
