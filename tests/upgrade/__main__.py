"""Upgrade the data folder of a release, and print what its pages answer: `python -m tests.upgrade FOLDER`.

The release itself wrote it: its examples, run for real, then an alert that was triaged, a pinned baseline, a reviewed
statement, an overruled gate, a target, notes, a channel, and a proof that no worker had begun. `DATABASE_URL` is an
empty database; FOLDER is an empty folder for what the release stored.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client, override_settings

WRITTEN = Path(__file__).with_name("release_0_1_2.tar.xz")
TABLES = "0001_release_0_1_2"
"""The migration that made the release's tables."""


def copy_rows(database: Path) -> None:
    """Make the release's tables in the empty database, and copy the rows of its SQLite file into them."""
    executor = MigrationExecutor(connection)
    named = {app for app, name in executor.loader.graph.nodes if name == TABLES}
    targets = [(app, TABLES) for app in sorted(named)]
    targets += [key for key in executor.loader.graph.leaf_nodes() if key[0] not in named]
    executor.migrate(targets)
    apps = executor.loader.project_state(targets).apps
    connections.databases["written"] = connections.databases["default"] | {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(database),
        "OPTIONS": {},
    }
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]
    with transaction.atomic():
        for model in models:
            rows = model._base_manager.using("written").all()
            model._base_manager.using("default").bulk_create(rows, batch_size=500)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def find_answers(addresses: list[str]) -> dict[str, int]:
    """Return the status of each page for the owner of the default project."""
    client = Client()
    client.force_login(get_user_model().objects.get(username="owner"))
    plain = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
    with override_settings(ALLOWED_HOSTS=["testserver"], STORAGES={**settings.STORAGES, **plain}):
        return {address: client.get(address).status_code for address in addresses}


def describe() -> dict[str, Any]:
    """Return what the database says: runs, verdicts, what people decided, and the answer of every page."""
    from evalhub.teams.models import Project
    from runs import models
    from scenarios.models import Suite
    from tests import tour

    base = f"/p/{Project.objects.get().slug}/"
    addresses = [*tour.PAGES.values(), *tour.MORE_PAGES.values()]
    addresses += [f"{base}suites/{slug}/" for slug in Suite.objects.values_list("slug", flat=True)]
    runs = list(models.Run.objects.order_by("pk"))
    addresses += [f"{base}runs/{run.pk}/" for run in runs]
    addresses += [f"{base}trials/{pk}/" for pk in models.Trial.objects.values_list("pk", flat=True)]
    addresses += [f"{base}compare/?runs={runs[-2].pk},{runs[-1].pk}"]
    of_suites = models.Change.objects.filter(scenario=None, measure__layer="trial", measure__name="pass")
    return {
        "runs": {str(run.pk): [run.state, run.outcome, run.passed, run.failed] for run in runs},
        "trials": Counter(models.Trial.objects.values_list("outcome", flat=True)),
        "verdicts": dict(of_suites.values_list("run", "verdict")),
        "alerts": list(models.Alert.objects.values_list("run", "state", "note", "named")),
        "baselines": list(models.Baseline.objects.values_list("run", flat=True)),
        "reviews": list(models.Review.objects.values_list("word", "note")),
        "overrules": list(models.Overrule.objects.values_list("name", "passed")),
        "jobs": list(models.Job.objects.values_list("kind", flat=True)),
        "notes": sorted(models.Annotation.objects.values_list("text", flat=True)),
        "pages": find_answers(addresses),
    }


def main(folder: Path) -> None:
    shutil.unpack_archive(WRITTEN, folder)
    written = folder / "release_0_1_2"
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ["EVALHUB_DATA"] = str(written)
    if os.environ["DATABASE_URL"].startswith("sqlite"):
        os.environ["DATABASE_URL"] = f"sqlite:///{written}/evalhub.sqlite3"
    django.setup()
    if connection.vendor != "sqlite":
        copy_rows(written / "evalhub.sqlite3")
    call_command("migrate", verbosity=0)
    call_command("migrate", check_unapplied=True, verbosity=0)
    print(json.dumps(describe()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
