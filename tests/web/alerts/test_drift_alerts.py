"""An alert of a drift on the page of regressions."""

from __future__ import annotations

from runs.models import Alert
from tests.builders import make_run
from tests.web.screen import main_of


def test_a_drift_says_since_when_and_offers_no_confirmation(signed_in, version, project):
    run = make_run(version)
    drift = {"since": 3, "before": 0.95, "after": 0.89, "runs": 11}
    Alert.objects.create(project=project, run=run, kind="drift", drift=drift)
    found = main_of(signed_in().get("/p/tools/regressions/"))
    assert "The pass rate fell from 95 % to 89 % from run 3 on" in found.text
    assert "drift" in found.badges
    assert "Confirm…" not in found.links


def test_a_drift_as_markdown_is_called_one(signed_in, version, project):
    drift = {"since": 3, "before": 0.95, "after": 0.89, "runs": 11}
    alert = Alert.objects.create(project=project, run=make_run(version), kind="drift", drift=drift)
    text = signed_in().get(f"/p/tools/regressions/{alert.pk}/markdown/").content.decode()
    assert text.startswith("## Drift: ")
    assert "The pass rate fell from 95 % to 89 % from run 3 on" in text
