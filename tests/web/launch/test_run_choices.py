"""What the form for new runs offers, and what stays chosen."""

from __future__ import annotations

import pytest
from django.utils import timezone

from runs.models import TargetCheck
from tests.builders import make_guidance, make_run, make_suite, make_target
from tests.runs.past_runs import past_run
from tests.web.launch.form import ADDRESS, FETCHED, given
from tests.web.screen import parse

pytestmark = pytest.mark.one_database


def by_name(table):
    """Return the rows of targets by their names."""
    return {row.all("label")[0].text: row for row in table.rows}


def test_what_is_chosen_stays_chosen(signed_in, version, project):
    guidance = make_guidance(version.suite, "AGENTS.md \u202ev1 <b>")
    foreign = make_guidance(make_suite(project, name="Second").suite)
    page = parse(signed_in().post(ADDRESS, given(plan="yes", guidance=str(guidance.pk))))
    assert [page.field(each).value for each in ("Suite", "Guidance")] == ["basics", str(guidance.pk)]
    assert set(page.field("Guidance").choices) == {"", str(guidance.pk)} and foreign
    assert "v1 <b>" in page.field("Guidance").choices[str(guidance.pk)]
    assert "\u202e" not in page


def test_the_address_fills_in_the_form(signed_in, version):
    page = parse(signed_in().get(f"{ADDRESS}?suite=basics&targets=local&models=gpt-5"))
    assert page.field("Models").value == "gpt-5"
    assert page.field("local").is_checked


def test_a_target_shows_its_state_and_how_to_fix_it(signed_in, version, project):
    for name, available, sentence in (
        ("ready", True, ""),
        ("broken", False, "No executable 'codex' on PATH."),
    ):
        TargetCheck.objects.create(
            target=make_target(project, name),
            at=timezone.now(),
            worker="eval-2",
            available=available,
            sentence=sentence,
            version="2.1",
        )
    make_target(project, "proposed", accepted=False)
    table = parse(signed_in().get(ADDRESS)).table("Targets")
    assert {name: row.cell("State").text for name, row in by_name(table).items()} == {
        "local": "not checked",
        "ready": "ready",
        "broken": "cannot start",
    }
    assert "No executable 'codex' on PATH. Checked on eval-2," in table.row("broken")
    assert table.count("Checked on") == 1


def test_a_target_shows_its_cost_per_trial(signed_in, version, project):
    past_run(version, cost_usd=0.107)
    past_run(version, cost_usd=None, target=make_target(project, "silent"))
    make_target(project, "unused")
    table = parse(signed_in().get(ADDRESS)).table("Targets")
    assert {name: row.cell("Cost per trial").text for name, row in by_name(table).items()} == {
        "local": "$0.107",
        "silent": "not measured",
        "unused": "– not measured",
    }


def test_what_is_hidden_in_a_name_is_shown(signed_in, version, project):
    make_target(project, "x\u202egpj.exe\x1b[31m<script>")
    text = signed_in().post(ADDRESS, given(targets=["x\u202egpj.exe\x1b[31m<script>"]), headers=FETCHED)
    assert "\u202e" not in parse(text)
    assert "<script>" not in text.content.decode()
    assert "--target" in parse(text)


def test_chips_narrow_the_run_and_keep_what_is_chosen(signed_in, large):
    client = signed_in()
    page = parse(client.get(f"{ADDRESS}?suite=large&targets=local&trials=5&judge=false"))
    links = {each.text: each.address for each in page.all("#only a")}
    assert list(links) == ["smoke 6", "failed last time 1"]
    after = parse(client.get(ADDRESS + links["failed last time 1"]))
    assert after.field("Only these scenarios").value == "c"
    assert after.link("failed last time 1").get("aria-current") == "true"
    assert "Start 5 trials" in after.buttons
    assert not after.field("Run the judge where configured").is_checked


def test_chips_follow_the_suite(signed_in, version, large):
    (chips,) = parse(signed_in().post(ADDRESS, given(), headers=FETCHED)).all("#only")
    assert chips["hx-swap-oob"] == "true"
    assert "smoke 2" in chips.links


def test_the_last_target_is_selected_unless_the_address_has_one(signed_in, version, project):
    codex, claude = make_target(project, "codex"), make_target(project, "claude")
    for target in (codex, claude):
        past_run(version, target=target)
    past_run(make_suite(project, name="Second"), target=codex)
    client = signed_in()

    def chosen(query: str) -> list[str]:
        page = parse(client.get(f"{ADDRESS}{query}"))
        return [each["value"] for each in page.all("input[name=targets][checked]")]

    assert chosen("?suite=basics") == ["claude"]
    assert chosen("?suite=second") == ["codex"]
    assert chosen("?suite=basics&targets=local&targets=codex") == ["codex", "local"]
    claude.accepted = False
    claude.save()
    assert chosen("?suite=basics") == []


def test_guidance_and_baselines_follow_the_suite(signed_in, version, project):
    second = make_suite(project, name="Second")
    own, foreign = make_guidance(second.suite), make_guidance(version.suite)
    baseline, other = (make_run(each, passed=1) for each in (second, version))
    form = given(suite="second", planned_suite="basics", guidance=str(foreign.pk), baseline_run=str(other.pk))
    client = signed_in()
    plan = parse(client.post(ADDRESS, form, headers=FETCHED))
    swapped = {each["id"]: each.all("option") for each in plan.all("select[hx-swap-oob]")}
    assert [each["value"] for each in swapped["id_guidance"]] == ["", str(own.pk)]
    assert [each["value"] for each in swapped["id_baseline_run"]] == ["", "last-pass", str(baseline.pk)]
    assert "Start 6 trials" in plan
    again = client.post(ADDRESS, {**form, "planned_suite": "second"}, headers=FETCHED)
    assert parse(again).all("select[hx-swap-oob]") == []


def test_judges_of_other_targets_are_not_offered(signed_in, version, project):
    make_target(project, "judge")
    agent = make_target(project, "agent")
    agent.definition = {**agent.definition, "judgeTarget": "judge"}
    agent.save()
    client = signed_in()
    offered = by_name(parse(client.get(ADDRESS)).table("Targets"))
    assert set(offered) == {"agent", "local"}
    assert "judge" in by_name(parse(client.get(f"{ADDRESS}?targets=judge")).table("Targets"))
    make_run(version, target=project.targets.get(name="judge"))
    assert "judge" in by_name(parse(client.get(ADDRESS)).table("Targets"))
