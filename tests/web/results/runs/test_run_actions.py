"""What can be done with a run: from its head, and at its end."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from runs.exchange.exports.exports import EXPORTS
from runs.results.run_page.reassess import LONGEST
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial
from tests.web.results.runs.pages import page

pytestmark = pytest.mark.one_database


def menu(shown, name="More"):
    """Return the addresses of the links in one of the run's menus, by their words; empty without it."""
    menus = [each for each in shown.all("details.menu") if each.all("summary")[0].text == name]
    return menus[0].links if menus else {}


def asked(address):
    """Return what an address asks of the form of a new run."""
    path, _, query = address.partition("?")
    assert path == "/p/tools/runs/new/"
    return {name: ", ".join(values) for name, values in QueryDict(query).lists()}


def mixed(version, **fields):
    """Return a run whose first scenario failed, and whose second had a failure and an error."""
    run = make_run(version, **fields)
    for key, outcome in (("create", "fail"), ("export", "fail"), ("export", "error")):
        make_trial(run, key, outcome=outcome)
    return run


def test_what_went_wrong_can_be_asked_for_again(signed_in, version):
    guidance = make_guidance(version.suite)
    target = make_target(version.suite.project, "claude & co")
    run = mixed(version, target=target, model="m=1", guidance=guidance)
    links = menu(page(signed_in(), close(run)))
    assert list(links) == [
        "Try other guidance…",
        "Rerun 2 failed scenarios…",
        "Rerun 1 scenario with errors…",
        "Judge or grade again…",
    ]
    same = {
        "suite": version.suite.slug,
        "targets": "claude & co",
        "models": "m=1",
        "guidance": str(guidance.pk),
    }
    assert asked(links["Rerun 2 failed scenarios…"]) == {**same, "only": "create, export"}
    assert asked(links["Rerun 1 scenario with errors…"]) == {**same, "only": "export"}


def test_the_whole_run_is_asked_for_again_with_its_guidance(signed_in, version):
    guidance = make_guidance(version.suite)
    text = page(signed_in(), make_run(version, guidance=guidance))
    assert asked(text.link("Run again…").address) == {
        "suite": version.suite.slug,
        "targets": "local",
        "guidance": str(guidance.pk),
    }


def test_what_went_well_or_is_not_over_is_not_asked_for_in_part(signed_in, version):
    well, open_run = make_run(version), mixed(version, state="running")
    make_trial(well, "create")
    client = signed_in()
    assert list(menu(page(client, close(well)))) == ["Judge or grade again…"]
    assert not menu(page(client, open_run))


MANY = [f"{number} {'x' * 100}" for number in range(LONGEST // 100)]


def test_a_key_with_a_comma_is_asked_for_by_itself(signed_in, project):
    run = make_run(make_suite(project, ["a,b"]))
    make_trial(run, "a,b", outcome="fail")
    links = menu(page(signed_in(), close(run)))
    assert asked(links["Rerun 1 failed scenario…"])["only"] == "a,b"


def test_more_keys_than_an_address_holds_have_no_rerun_link(signed_in, project):
    run = make_run(make_suite(project, MANY))
    for key in MANY:
        make_trial(run, key, outcome="fail")
    text = page(signed_in(), close(run))
    assert list(menu(text)) == ["Judge or grade again…"]
    assert "Run again…" in text


@pytest.mark.parametrize(
    ("role", "target"),
    [("viewer", {}), ("admin", {"accepted": False}), ("admin", {"provider": "imported"})],
    ids=["a viewer", "a proposed target", "imported results"],
)
def test_a_run_that_cannot_start_again_has_no_link(signed_in, version, role, target):
    for name, value in target.items():
        setattr(chosen := make_target(version.suite.project, "other"), name, value)
        chosen.save()
    run = mixed(version, **({"target": chosen} if target else {}))
    text = page(signed_in(role), close(run))
    assert "Run again…" not in text
    assert not [words for words in menu(text) if words.startswith("Rerun ")]


def test_a_run_of_a_branch_can_be_the_baseline_of_all_or_of_it(signed_in, version):
    client = signed_in()
    assert "Mark as baseline" in page(client, make_run(version)).buttons
    text = page(client, make_run(version, branch="<b>"))
    assert "Mark as baseline of all branches" in text.buttons
    button = text.button("Mark as baseline of branch <b>")
    assert (button["name"], button["value"]) == ("branch", "<b>")


def test_the_scenarios_and_every_document_can_be_downloaded(signed_in, version):
    run = make_run(version)
    text = page(signed_in(), run)
    links = menu(text, "Download")
    assert next(iter(links)) == "Scenarios, CSV"
    assert list(links.values())[1:] == [f"/p/tools/runs/{run.pk}/download/{name}/" for name in EXPORTS]
