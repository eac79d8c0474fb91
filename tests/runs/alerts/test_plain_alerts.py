"""Alerts of older releases: due dates and tags stay readable in notes, and what was being confirmed is suspected."""

from __future__ import annotations

from datetime import date

import pytest
from django.core.management import call_command

from runs.models import Alert, Run
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


@pytest.mark.slow
def test_what_was_being_confirmed_is_suspected_and_names_what_broke():
    project = make_project()
    make_target(project)
    version = make_suite(project, ("create", "export"))
    make_compared(version, {"create": "pass", "export": "pass"}, trials=6)
    pinned = {"options": {"baseline": str(Run.objects.get().pk)}}
    bad = {"create": "pass", "export": "fail"}
    runs = [make_compared(version, bad, trials=6, branch=f"fix-{n}", **pinned) for n in range(4)]
    before = migrate_runs_to("0069_retests").get_model("runs", "Alert")
    try:
        for run, evidence, fresh in zip(
            runs,
            ("confirming", "not_confirmed", "not_confirmed", "confirmed"),
            ([], [], [{"p": 0.5}], [{"p": 0.001}]),
            strict=True,
        ):
            before.objects.filter(run=run.pk).update(evidence=evidence, fresh=fresh)
    finally:
        call_command("migrate", verbosity=0)
    kept = [Alert.objects.get(run=run) for run in runs]
    # Fresh trials that could not decide had no tests.
    assert [alert.evidence for alert in kept] == ["suspected", "suspected", "not_confirmed", "confirmed"]
    assert [alert.named for alert in kept] == [["export"]] * 4
