"""Three to ten runs compared with the first one."""

from __future__ import annotations

import pytest

from runs.models import Run
from runs.models.run import RunState
from scenarios.models import ScenarioVersion
from tests.builders import make_project, make_suite, make_target
from tests.web.compare.compared_runs import KEYS, ran
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/compare/"


@pytest.fixture
def version(project):
    return make_suite(project, KEYS, name="Basics")


def shown(client, runs, more=""):
    return parse(client.get(f"{ADDRESS}?runs={','.join(str(run.pk) for run in runs)}{more}"))


def test_each_run_has_a_verdict_against_the_first(signed_in, version):
    runs = [ran(version, trials=6), ran(version, "export", trials=6), ran(version, trials=6)]
    text = shown(signed_in("viewer"), runs)
    assert f"2 runs compared with run {runs[0].pk}" in text
    cells = text.table("Measures").row("Pass rate").cells
    assert cells[1].text == "100 %"
    assert cells[2].text.startswith("67 % −33 points")
    assert cells[2].text.endswith("regressed")
    assert cells[3].text.startswith("100 % ±0 points")
    assert [cell.text for cell in text.table("Measures").row("Comparable scenarios").cells[1:]] == [
        "–", "3 of 3", "3 of 3",
    ]  # fmt: skip


def test_every_run_has_a_menu_of_links(signed_in, version):
    runs = [ran(version) for _ in range(3)]
    one, two, three = (run.pk for run in runs)
    menus = shown(signed_in(), runs).table("Runs").all("details.menu")
    found = [{each.text: each.address for each in menu.all("a")} for menu in menus]
    assert found[0] == {
        f"Open run {one}": f"/p/tools/runs/{one}/", "Remove": f"?runs={two},{three}",
    }  # fmt: skip
    assert found[1] == {
        f"Open run {two}": f"/p/tools/runs/{two}/",
        "Compare with the base alone": f"?runs={one},{two}",
        "Make it the base": f"?runs={two},{one},{three}",
        "Move down": f"?runs={one},{three},{two}",
        "Remove": f"?runs={one},{three}",
    }
    assert found[2]["Move up"] == f"?runs={one},{three},{two}"
    assert "Move down" not in found[2]


def test_the_leftmost_run_is_the_base(signed_in, version):
    runs = [ran(version, "export"), ran(version), ran(version)]
    assert "+33 points" in shown(signed_in(), runs).table("Measures").row("Pass rate").cells[2]
    assert "−33 points" in shown(signed_in(), runs[::-1]).table("Measures").row("Pass rate").cells[3]


def test_scenarios_show_the_trials_of_each_run_as_dots(signed_in, version):
    runs = [ran(version, trials=2), ran(version, "export", trials=2), ran(version, keys=KEYS[:2], trials=2)]
    client = signed_in("viewer")
    page = shown(client, runs)
    assert [row.cells[0].text for row in page.table("Scenarios").rows] == ["export", "list", "create"]
    table = parse(client.get(f"{ADDRESS}{page.link('What differs 2').address}")).table("Scenarios")
    assert [row.cells[0].text for row in table.rows] == ["export", "list"]
    cells = table.row("export").cells
    assert [cell.all("[role=img]")[0]["aria-label"] for cell in cells[1:]] == [
        "2 passed",
        "2 failed",
        "2 passed",
    ]
    assert "▼ worse" in cells[2]
    assert table.row("list").cells[3].text == "–"


def test_a_run_without_judges_is_not_compared(signed_in, version):
    ScenarioVersion.objects.filter(scenario__key="export").update(judge_hash="j")
    judged = {"fingerprint": {"judge": "strict", "judge_sha256": "1" * 64}}
    runs = [
        ran(version, **judged),
        ran(version, "export", **judged),
        ran(version, "export", options={"judge": False}),
    ]
    cells = shown(signed_in(), runs).table("Scenarios").row("export").cells
    assert "▼ worse" in cells[2]
    assert "worse" not in cells[3] and "! changed" in cells[3]


def test_without_a_difference_the_scenarios_lead_to_all(signed_in, version):
    text = shown(signed_in(), [ran(version) for _ in range(3)], "&show=differing")
    assert "No scenario differs" in text
    assert text.link("Show all 3")


PROGRAMS = (("claude-code", "sonnet", "2.0.1"), ("codex", "gpt-x", "0.63.0"), ("opencode", "", "1.0.9"))


def test_agent_programs_on_one_suite_are_columns(signed_in, version):
    runs = [
        ran(version, *broken, trials=6, model=model, target=make_target(version.suite.project, name),
            fingerprint={"provider_version": number})
        for (name, model, number), broken in zip(PROGRAMS, [(), ("export",), ()], strict=True)
    ]  # fmt: skip
    page = shown(signed_in("viewer"), runs)
    assert page.headings[0] == "3 agent programs on Basics"
    names = ["claude-code · sonnet", "codex · gpt-x", "opencode"]
    programs = page.table("Runs")
    assert [cell.text for row in programs.rows for cell in row.all("summary")] == names
    assert [row.cell("Version").text for row in programs.rows] == ["2.0.1", "0.63.0", "1.0.9"]
    assert programs.rows[1].cell("Pass rate").text.startswith("67 % −33 points")
    assert programs.rows[1].cell("Pass rate").text.endswith("regressed")
    for each in (page.table("Scenarios"), page.table("Measures")):
        assert [cell.text for cell in each.all("thead th")[1:]] == names
    assert [cell.text for cell in page.table("Scenarios").row("export").cells[1:]] == [
        "6/6",
        "0/6 ▼ worse",
        "6/6",
    ]


def test_models_of_one_program_are_columns(signed_in, version):
    page = shown(signed_in(), [ran(version, model=model) for model in ("large", "small", "tiny")])
    assert page.headings[0] == "3 models on Basics"


def test_a_matrix_follows_its_runs_until_they_are_finished(signed_in, version):
    runs = [ran(version) for _ in range(3)]
    client = signed_in()
    assert "still running" not in shown(client, runs)
    Run.objects.filter(pk=runs[2].pk).update(state=RunState.RUNNING)
    page = shown(client, runs)
    assert "1 of 3 runs is still running." in page
    [polled] = page.all("[hx-trigger='every 3s']")
    assert parse(
        client.get(f"{ADDRESS}{polled['hx-get']}", HTTP_HX_REQUEST="true", HTTP_HX_TARGET="matrix")
    ).table("Measures")


def test_differing_parts_of_the_fingerprint_are_highlighted(signed_in, version):
    runs = [ran(version, fingerprint={"tool_version": each, "judge": "j"}) for each in ("1.0", "2.0", "1.0")]
    table = shown(signed_in(), runs).table("Runs compared")
    assert [cell.text for cell in table.row("Tool").cells[1:]] == ["1.0", "2.0", "1.0"]
    assert [each.text for each in table.all("mark")] == ["2.0"]


def test_a_part_of_the_matrix_is_swapped_by_htmx(signed_in, version):
    runs = [ran(version) for _ in range(3)]
    query = f"?runs={','.join(str(run.pk) for run in runs)}&show=differing"
    part = (
        signed_in().get(f"{ADDRESS}{query}", HTTP_HX_REQUEST="true", HTTP_HX_TARGET="matrix").content.decode()
    )
    assert "<html" not in part
    assert parse(part).headings[:2] == [f"Against Run {runs[0].pk}", "Scenarios"]


def test_runs_of_another_project_are_refused(signed_in, version):
    stranger = ran(make_suite(make_project("other"), KEYS))
    response = signed_in().get(f"{ADDRESS}?runs={ran(version).pk},{ran(version).pk},{stranger.pk}")
    assert response.status_code == 404
    assert f"There is no run {stranger.pk} in this project." in parse(response)


def test_ten_runs_cost_as_many_queries_as_three(signed_in, version, django_assert_max_num_queries):
    runs, client = [ran(version) for _ in range(10)], signed_in()
    shown(client, runs[:3])
    with django_assert_max_num_queries(12):
        shown(client, runs)


@pytest.mark.parametrize(
    ("more", "line"), [("", "trial/pass,rate,{base},1.0,,,,,"), ("&table=scenarios", "export,{base},1,1,")]
)
def test_the_matrix_is_csv_at_the_same_address(signed_in, version, more, line):
    runs = [ran(version), ran(version, "export"), ran(version)]
    response = signed_in().get(f"{ADDRESS}?runs={','.join(str(run.pk) for run in runs)}{more}&format=csv")
    lines = b"".join(response.streaming_content).decode().splitlines()
    assert line.format(base=runs[0].pk) in lines
