"""Fill a database at an earlier schema, migrate it, and print what its pages answer: `python -m tests.upgrade NAME`.

The rows were written by the version itself: its examples, run for real, then `manage.py dumpdata`.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import Client, override_settings

from tests.upgrade.history import one_by_one
from tests.upgrade.tables import tables

SCHEMAS = {
    "release_0_1_1": {"teams": "0012", "runs": "0060"},
}
"""The newest migration of each app in the version that wrote the rows, where it isn't the last one."""
WITHOUT_ROWS = {"run-tools", "run-regressed", "not-found"}
"""Pages of the examples that the earlier versions' examples had nothing for."""


def migrate_to(name: str) -> Any:
    """Make the tables of that version and return its models."""
    with one_by_one():
        executor = MigrationExecutor(connection)
        wanted = SCHEMAS[name]
        targets = [key for key in executor.loader.graph.nodes if wanted.get(key[0]) == key[1][:4]]
        targets += [key for key in executor.loader.graph.leaf_nodes() if key[0] not in wanted]
        executor.migrate(targets)
        return executor.loader.project_state(targets).apps


def fill(apps: Any, rows: list[dict[str, Any]]) -> None:
    """Insert the rows as they are."""
    grouped: dict[str, list[Any]] = defaultdict(list)
    many: list[tuple[Any, str, list[Any]]] = []
    for row in rows:
        model = apps.get_model(row["model"])
        values = {model._meta.pk.attname: row["pk"]}
        instance = model()
        for field_name, value in row["fields"].items():
            field = model._meta.get_field(field_name)
            if field.many_to_many:
                many.append((instance, field_name, value))
            else:
                values[field.attname] = field.to_python(value) if not field.is_relation else value
        for attribute, value in values.items():
            setattr(instance, attribute, value)
        grouped[row["model"]].append(instance)
    with transaction.atomic():
        for label, instances in grouped.items():
            apps.get_model(label).objects.bulk_create(instances)
        for instance, field_name, keys in many:
            getattr(instance, field_name).set(keys)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(
            no_style(), [apps.get_model(label) for label in grouped]
        ):
            cursor.execute(statement)


def answers(addresses: list[str]) -> dict[str, int]:
    """Return the status of each page for the owner of the default project."""
    client = Client()
    client.force_login(get_user_model().objects.get(username="owner"))
    plain = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
    with override_settings(ALLOWED_HOSTS=["testserver"], STORAGES={**settings.STORAGES, **plain}):
        return {address: client.get(address).status_code for address in addresses}


def main(name: str) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    rows = json.loads(gzip.decompress(Path(__file__).with_name(f"{name}.json.gz").read_bytes()))
    fill(migrate_to(name), rows)
    call_command("migrate", verbosity=0)
    call_command("migrate", check_unapplied=True, verbosity=0)
    counted = io.StringIO()
    call_command("recompute", "--json", stdout=counted, stderr=io.StringIO())
    from evalhub.teams.models import Project
    from runs.models import Run, Trial
    from scenarios.models import Suite
    from tests import tour

    base = f"/p/{Project.objects.get().slug}/"
    pages = {**tour.PAGES, **tour.MORE_PAGES}
    addresses = [address for name, address in pages.items() if name not in WITHOUT_ROWS]
    addresses += [f"{base}suites/{slug}/" for slug in Suite.objects.values_list("slug", flat=True)]
    runs = list(Run.objects.order_by("pk"))
    addresses += [f"{base}runs/{run.pk}/" for run in runs]
    addresses += [f"{base}trials/{pk}/" for pk in Trial.objects.values_list("pk", flat=True)]
    addresses += [f"{base}compare/?runs={runs[-2].pk},{runs[-1].pk}"]
    document = {
        "runs": {str(run.pk): [run.state, run.outcome, run.passed, run.failed] for run in runs},
        "trials": Counter(Trial.objects.values_list("outcome", flat=True)),
        "pages": answers(addresses),
        "tables": tables(),
        "recounted": json.loads(counted.getvalue()),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1])
