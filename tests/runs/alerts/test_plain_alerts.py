"""What alerts had until 0.1, due dates and tags, stays readable in their notes."""

from __future__ import annotations

from datetime import date

import pytest
from django.core.management import call_command

from runs.models import Alert
from tests.builders import make_compared, make_project, make_suite, make_target
from tests.upgrade.history import migrate_runs_to

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_due_dates_and_tags_move_into_notes():
    project = make_project()
    make_target(project)
    version = make_suite(project, ("create",))
    make_compared(version, {"create": "pass"}, trials=6)
    runs = [make_compared(version, {"create": "fail"}, trials=6) for _ in range(2)]
    before = migrate_runs_to("0060_looks").get_model("runs", "Alert")
    try:
        told = before.objects.filter(run=runs[0].pk)
        told.update(note="A new flag.", due=date(2026, 11, 30), tags=["night", "flaky"])
    finally:
        call_command("migrate", verbosity=0)
    notes = dict(Alert.objects.values_list("run", "note"))
    assert notes.pop(runs[0].pk) == "A new flag.\nDue 2026-11-30.\nTags: night, flaky."
    assert set(notes.values()) <= {""}
