"""What is left in the database after a test that commits."""

from __future__ import annotations

from django.apps import apps
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from tests.api.samples import make_samples
from tests.builders import make_project
from tests.emptying.management.commands.flush import Command


def rows() -> dict[str, int]:
    models = apps.get_models(include_auto_created=True)
    return {model.__name__: found for model in models if (found := model._base_manager.count())}


def test_every_row_goes_but_those_of_the_migrations(transactional_db: None) -> None:
    before = rows()
    assert set(before) == {"ContentType", "Permission"}
    types, permissions = set(ContentType.objects.values_list()), set(Permission.objects.values_list())
    make_samples(make_project())
    assert len(rows()) > 20
    call_command(Command(), verbosity=0, interactive=False, database="default", reset_sequences=False)
    assert rows() == before
    assert (set(ContentType.objects.values_list()), set(Permission.objects.values_list())) == (
        types,
        permissions,
    )
