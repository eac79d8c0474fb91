"""What people press on an alert after a change: *Intended*, or *Revert*."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.models import Alert
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Suite, SuiteVersion
from scenarios.sources import source_of
from tests.builders import make_compared
from tests.greeting import EXISTS, greeting
from tests.web.screen import parse

pytestmark = pytest.mark.one_database
ADDRESS = "/p/tools/regressions/"
TEXT = greeting(EXISTS)


def uploaded(project, document, **more):
    files = {
        "greet.yaml": TEXT.encode(),
        "part.yaml": TEXT.replace("greet", "part").encode(),
        "templates/repo/README.md": b"Hello.",
        "templates/repo/AGENTS.md": document,
        **more,
    }
    (imported,) = import_files(Bundle("box", files), project=project, by=None)
    return imported


@pytest.fixture
def alert(project):
    """Return the alert of a run that regressed with the second version of its suite's guidance."""
    first = uploaded(project, b"Be careful.")
    good = {"greet": "pass", "part": "pass"}
    make_compared(first.version, good, trials=6, guidance=first.guidance)
    second = uploaded(project, b"Be quick.")
    make_compared(second.version, dict.fromkeys(good, "fail"), trials=6, guidance=second.guidance)
    return Alert.objects.get()


def adopted(suite):
    return suite.uploads.first().guidance


def card_of(client, **query):
    return parse(client.get(ADDRESS, query)).all("article")[0]


def test_a_card_says_what_it_followed_and_offers_three_buttons(signed_in, alert):
    card = card_of(signed_in("author"))
    assert "▼ Worse after guidance 2: Pass rate −100 points" in card
    assert card.buttons[:3] == ["Intended", "Revert to guidance 1", "Acknowledge"]


def test_intended_closes_it_under_that_name(signed_in, alert):
    client = signed_in("runner")
    card = card_of(client)
    assert card.buttons[:2] == ["Intended", "Acknowledge"]
    response = client.post(f"{ADDRESS}{alert.pk}/", {"state": card.button("Intended")["value"]})
    assert f"Alert {alert.pk}: intended." in parse(client.get(response.url))
    assert "intended" in card_of(client, state="wont_fix").badges
    event = AuditEvent.objects.get(action="alert.triage")
    assert (event.subject, event.detail["state"]) == (f"run {alert.run_id}", "wont_fix")


def test_revert_makes_the_guidance_before_it_the_suites_again(signed_in, alert):
    client, suite = signed_in("author"), Suite.objects.get()
    before = suite.uploads.count()
    response = client.post(f"{ADDRESS}{alert.pk}/revert/")
    assert response.url == f"{ADDRESS}?state=fixed#alert-{alert.pk}"
    assert "box has guidance 1 again." in parse(client.get(response.url))
    assert (adopted(suite).number, suite.uploads.count()) == (1, before + 1)
    assert suite.uploads.first().suite_version == alert.run.suite_version
    assert source_of(suite).text("templates/repo/AGENTS.md") == "Be careful."
    alert.refresh_from_db()
    assert (alert.state, bool(alert.decided)) == ("fixed", True)
    event = AuditEvent.objects.get(action="guidance.revert")
    assert (event.subject, event.detail) == ("guidance 1", {"suite": "box", "number": 1})
    assert event.user.username.startswith("author")
    assert "reverted to guidance" in parse(signed_in("admin").get("/p/tools/settings/audit/"))


def test_a_revert_of_a_removed_document_brings_its_file_back(signed_in, project):
    first = uploaded(project, b"Be careful.", **{"templates/repo/CLAUDE.md": b"Sign."})
    make_compared(first.version, {"greet": "pass"}, trials=12, guidance=first.guidance)
    second = uploaded(project, b"Be careful.")
    make_compared(second.version, {"greet": "fail"}, trials=12, guidance=second.guidance)
    signed_in("author").post(f"{ADDRESS}{Alert.objects.get().pk}/revert/")
    suite = Suite.objects.get()
    assert adopted(suite) == first.guidance
    assert source_of(suite).text("templates/repo/CLAUDE.md") == "Sign."


def test_files_that_were_not_kept_are_named(signed_in, alert):
    SuiteVersion.objects.update(source=None)
    client = signed_in("author")
    response = client.post(f"{ADDRESS}{alert.pk}/revert/")
    assert "Its files still have guidance 2" in parse(client.get(response.url))
    assert adopted(Suite.objects.get()).number == 1


def test_a_change_in_between_is_not_reverted(signed_in, project, alert):
    uploaded(project, b"Be both.")
    client = signed_in("author")
    assert not [name for name in card_of(client).buttons if name.startswith("Revert")]
    response = client.post(f"{ADDRESS}{alert.pk}/revert/")
    assert "Nothing was reverted." in parse(client.get(response.url))
    assert adopted(Suite.objects.get()).number == 3


def test_a_model_has_no_revert(signed_in, version):
    for model, outcome in (("small", "pass"), ("large", "fail")):
        make_compared(version, {"create": outcome, "export": outcome}, trials=6, fingerprint={"model": model})
    card = card_of(signed_in("admin"))
    assert "Worse after model large" in card
    assert card.buttons[:2] == ["Intended", "Acknowledge"]


def test_viewers_are_not_offered_to_decide(signed_in, alert):
    client = signed_in("viewer")
    assert card_of(client).buttons == []
    for path in ("", "revert/"):
        assert client.post(f"{ADDRESS}{alert.pk}/{path}", {"state": "wont_fix"}).status_code == 403
    assert signed_in("runner").post(f"{ADDRESS}{alert.pk}/revert/").status_code == 403


def test_it_waits_in_the_menu_and_is_not_the_tools_at_home(signed_in, alert):
    page = parse(signed_in().get("/p/tools/"))
    assert "The only line is worse after a change on purpose" in page.headings
    assert "after guidance 2, since" in page.all("article")[0]
    assert "Regressions 1 untriaged" in page.links


def test_its_run_calls_it_by_name(signed_in, alert):
    page = parse(signed_in().get(f"/p/tools/runs/{alert.run_id}/"))
    assert "Worse after guidance 2, untriaged" in page.links
    assert "isn't counted as the tool's" in page


def test_as_markdown_it_has_its_own_heading(signed_in, alert):
    text = signed_in().get(f"{ADDRESS}{alert.pk}/markdown/").content.decode()
    assert text.startswith("## Worse after guidance 2: box on local")
