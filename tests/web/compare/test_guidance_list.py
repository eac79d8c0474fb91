"""The guidance of a suite: which version is best, each against the one before it, and by tool version."""

from __future__ import annotations

import pytest

from runs.models import Launch
from scenarios.adopted_guidance import adopt_guidance, last_guidance
from tests.builders import close, make_guidance, make_run, make_target, make_trials
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

LIST = "/p/tools/guidance/"
TEXTS = {"poor": "Retry.\n", "good": "Read the error.\n", "better": "Read the error first.\n"}


@pytest.fixture
def versions(version):
    """Return three versions of a suite that uses the first."""
    made = []
    for name, text in TEXTS.items():
        guidance = make_guidance(version.suite, name)
        guidance.files = [{"path": "AGENTS.md", "content": text}]
        guidance.save()
        made.append(guidance)
    adopt_guidance(made[0], by=None)
    return made


def ran(version, *sides, trials=8, **changes):
    """Run versions together, each with its trials' outcome."""
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    for guidance, outcome in sides:
        run = make_run(version, guidance=guidance, launch=launch, **{"tool_version": "tool 1", **changes})
        make_trials(run, {key: [outcome] * trials for key in ("create", "export")}, cost_usd=0.25)
        close(run)


def page_of(signed_in, role="admin", query=""):
    return parse(signed_in(role).get(LIST + query))


def title(page):
    return page.all("h1")[0].text


def test_a_better_version_is_named_with_its_next_step(signed_in, version, versions):
    ran(version, (versions[0], "fail"), (versions[1], "pass"))
    page = page_of(signed_in)
    assert title(page) == "good is the best AGENTS.md so far"
    assert "100 % pass, against 0 % with poor, which the suite uses." in page
    assert "Adopt good" in page.buttons
    assert "Adopt good" not in page_of(signed_in, "viewer").buttons
    assert "An author can adopt it." in page_of(signed_in, "viewer")


def test_a_skill_is_called_by_its_file_and_not_by_its_folder(signed_in, version, versions):
    for each in versions:
        each.files = [{**each.files[0], "path": ".agents/skills/export/SKILL.md"}]
        each.save()
    ran(version, (versions[0], "fail"), (versions[1], "pass"))
    assert title(page_of(signed_in)) == "good is the best SKILL.md so far"


def test_one_press_adopts_it(signed_in, version, versions):
    ran(version, (versions[0], "fail"), (versions[1], "pass"))
    client = signed_in("author")
    answer = client.post(f"{LIST}{versions[1].pk}/adopt/")
    assert last_guidance(version.suite) == versions[1]
    page = parse(client.get(answer.url))
    assert "Basics now uses good." in page
    assert title(page) == "good is the best AGENTS.md so far"
    assert "The suite uses it. The other version regressed." in page
    assert "Basics uses good already." in parse(client.post(f"{LIST}{versions[1].pk}/adopt/", follow=True))


def test_who_may_not_change_the_suite_adopts_nothing(signed_in, version, versions):
    assert signed_in("runner").post(f"{LIST}{versions[1].pk}/adopt/").status_code == 403
    assert last_guidance(version.suite) == versions[0]


@pytest.mark.parametrize(
    ("sides", "heading", "step"),
    [
        ([], "No run had guidance yet", "Run poor and better…"),
        ([(0, "pass")], "Only poor has run", "Run poor and better…"),
        ([(1, "pass")], "poor has not run here", "Run poor…"),
        ([(0, "pass"), (1, "pass")], "No version is known to be better than poor", "Run poor and good…"),
        ([(0, "pass"), (1, "fail")], "poor is the best AGENTS.md so far", "Try other guidance…"),
    ],
)
def test_the_title_is_no_more_than_what_is_known(signed_in, version, versions, sides, heading, step):
    trials = 2 if heading.startswith("No version") else 8
    ran(version, *((versions[place], outcome) for place, outcome in sides), trials=trials)
    page = page_of(signed_in)
    assert title(page) == heading
    assert step in page.links


def test_each_version_is_compared_with_the_one_before(signed_in, version, versions):
    ran(version, *zip(versions, ("fail", "pass", "fail"), strict=True))
    table = page_of(signed_in).table("Versions")
    heads = [each.text for each in table.node.select("thead th")]
    assert ["first" in heads[1], "improved" in heads[2], "regressed" in heads[3]] == [True, True, True]
    assert "in use" in heads[1] and "+1 −1 lines" in heads[2]
    strip = str(table.row("Pass rate").all("[role=img]")[0]["aria-label"]).replace("\u00a0", " ")
    assert "good 100 %, 95 % interval 81 % to 100 %" in strip
    assert "+100 points" in strip and "against poor: improved" in strip
    assert "$0.25" in str(table.row("Cost per trial").all("[role=img]")[0]["aria-label"])


def test_a_version_without_a_shared_tool_version_is_not_compared(signed_in, version, versions):
    ran(version, (versions[0], "fail"), tool_version="tool 1")
    ran(version, (versions[1], "pass"), tool_version="tool 2")
    page = page_of(signed_in)
    assert "not compared" in page.table("Versions").text
    assert title(page) == "No version is known to be better than poor"


def test_a_place_is_a_target_with_a_model(signed_in, project, version, versions):
    ran(version, (versions[0], "fail"), (versions[1], "pass"))
    ran(version, (versions[0], "fail"), target=make_target(project, "other"), model="mini")
    page = page_of(signed_in)
    assert page.field("Target").value == "local"
    assert title(page_of(signed_in, query="?target=other · mini")) == "Only poor has run"


def test_a_cell_is_a_rate_with_its_number_and_leads_to_runs(signed_in, version, versions):
    ran(version, (versions[0], "fail"), (versions[1], "pass"))
    ran(version, (versions[1], "pass"), tool_version="tool 2")
    page = page_of(signed_in)
    table = page.table("Tool versions and guidance")
    assert table.row_names == ["tool 2", "tool 1"]
    cells = [each.text for each in table.row("tool 1").cells]
    assert cells[-1].startswith("100 %") and cells[-1].endswith("16")
    assert "95 % interval 81 %" in cells[-1] and "$0.25 per trial" in cells[-1] and "1 run" in cells[-1]
    assert any(f"guidance={versions[1].pk}&tool_version=tool%202" in address for address in page.addresses)


def test_a_cell_of_many_runs_says_how_many_it_counts(signed_in, version, versions):
    for _ in range(21):
        make_run(version, guidance=versions[0])
    assert "newest 20 of 21 runs" in page_of(signed_in)


def test_the_address_of_its_former_page_leads_here(signed_in, version):
    response = signed_in().get("/p/tools/guidance/matrix/?suite=basics", follow=True)
    assert response.request["PATH_INFO"] == "/p/tools/guidance/"
    assert response.request["QUERY_STRING"] == "suite=basics"
