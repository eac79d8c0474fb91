"""Targets files taken over."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Target, TargetSlot
from runs.targets.import_targets import import_targets
from scenarios.formats.parsed import ScenarioFileError
from tests.builders import make_project

pytestmark = pytest.mark.django_db


def text(workers: int = 2, response: str = "hi") -> bytes:
    return f"targets:\n  - name: m\n    provider: mock\n    workers: {workers}\n    response: {response}\n".encode()


def test_it_stores_a_target_with_its_places():
    (target,) = import_targets(make_project(), text(), "targets.yaml", by=None, base_folder="/srv/agents")
    assert (target.provider, target.workers, target.base_folder) == ("mock", 2, "/srv/agents")
    assert TargetSlot.objects.filter(target=target).count() == 2


def test_it_replaces_a_target_of_the_same_name():
    project = make_project()
    import_targets(project, text(4), "targets.yaml", by=None)
    import_targets(project, text(1, "bye"), "targets.yaml", by=None)
    target = Target.objects.get()
    assert (target.workers, target.definition["response"]) == (1, "bye")
    assert TargetSlot.objects.count() == 1


def test_the_same_file_again_changes_and_notes_nothing():
    project = make_project()
    import_targets(project, text(), "targets.yaml", by=None)
    import_targets(project, text(), "targets.yaml", by=None)
    assert AuditEvent.objects.filter(action="target.change").count() == 1


def test_a_proposal_leaves_what_is_accepted_alone():
    project = make_project()
    import_targets(project, text(), "targets.yaml", by=None)
    import_targets(project, text(9), "targets.yaml", by=None, accepted=False)
    assert Target.objects.get().workers == 2


def test_an_admin_accepts_a_proposal_by_taking_it_over():
    project = make_project()
    import_targets(project, text(), "targets.yaml", by=None, accepted=False)
    import_targets(project, text(), "targets.yaml", by=None)
    assert Target.objects.get().accepted


def test_a_wrong_file_stores_nothing():
    with pytest.raises(ScenarioFileError):
        import_targets(
            make_project(),
            b"targets:\n  - {name: a, provider: mock}\n  - {name: b, provider: moc}\n",
            "t.yaml",
            by=None,
        )
    assert not Target.objects.exists()
