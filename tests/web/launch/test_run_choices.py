"""What the form for new runs offers, and what stays chosen."""

from __future__ import annotations

import pytest
from django.utils import timezone

from runs.models import TargetCheck
from scenarios.models import Upload
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
    foreign = make_guidance(make_suite(project, name="Second").suite, "foreign")
    page = parse(
        signed_in().post(
            ADDRESS, given(plan="yes", guidance=str(guidance.pk), only="export", models="a, b", run_tags="x")
        )
    )
    assert page.field("Suite").value == "basics"
    (latest, own) = page.choices("Guidance").items()
    assert latest[0].startswith("Latest upload: no guidance") and not latest[1]
    assert own[0].startswith("AGENTS.md") and "v1 <b>" in own[0] and own[1]
    assert "foreign" not in page.region("Plan").text and foreign
    assert page.choices("Scenarios") == {"create": False, "export": True}
    assert page.choices("Models") == {"a": True, "b": True}
    assert page.choices("Run tags") == {"x": True}
    assert "\u202e" not in page


def test_the_address_fills_in_the_form(signed_in, version):
    page = parse(
        signed_in().get(f"{ADDRESS}?suite=basics&targets=local&models=gpt-5&only=create&only=export")
    )
    assert page.choices("Models") == {"gpt-5": True}
    assert all(page.choices("Scenarios").values())
    assert page.field("local").is_checked


def test_models_and_tags_of_earlier_runs_are_offered_by_name(signed_in, version):
    make_run(version, model="gpt-5", tags=["nightly", "weekly"])
    make_run(version, tags=["nightly"])
    page = parse(signed_in().get(ADDRESS))
    assert page.choices("Models") == {"gpt-5": False}
    assert list(page.choices("Run tags")) == ["nightly", "weekly"]


def test_names_with_commas_are_chosen_from_the_list(signed_in, project):
    make_target(project)
    make_suite(project, ("a, b", "c"), name="Commas")
    page = parse(signed_in().post(ADDRESS, given(suite="commas", only=["a, b"], plan="yes")))
    assert page.choices("Scenarios") == {"a, b": True, "c": False}
    assert "Start 3 trials" in page.buttons


def test_tags_and_tiers_narrow_the_run(signed_in, project):
    make_target(project)
    make_suite(project, ("a", "b"), name="Tagged", tags=["slow", "git"])
    client = signed_in()
    page = parse(client.post(ADDRESS, given(suite="tagged", tags=["slow", "git"], plan="yes")))
    assert page.choices("With any of these tags") == {"git": True, "slow": True}
    assert "git 2" in page
    assert "--tags slow,git" in page.region("Plan")
    assert "Up to tier" not in page, "all scenarios are of one tier"
    assert parse(client.get(f"{ADDRESS}?suite=tagged&tier=3")).field("Up to tier").value == "3"


def test_a_guidance_card_shows_its_newest_run(signed_in, version):
    guidance = make_guidance(version.suite, "AGENTS.md v1")
    make_run(version, guidance=guidance, state="finished", passed=1, failed=1)
    newest = make_run(version, guidance=guidance, state="finished", passed=3, failed=1)
    _, card = parse(signed_in().get(ADDRESS)).all("#guidance label")
    assert f"run {newest.pk}: 75 %" in card


def test_the_latest_upload_has_one_card(signed_in, version):
    guidance = make_guidance(version.suite, "AGENTS.md v1")
    version.suite.uploads.update(guidance=guidance)
    page = parse(signed_in().get(f"{ADDRESS}?suite=basics&guidance={guidance.pk}"))
    ((card, chosen),) = page.choices("Guidance").items()
    assert card.startswith("Latest upload: AGENTS.md v1") and chosen


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
        "local": "$0.11 a trial",
        "silent": "not measured",
        "unused": "– not measured",
    }


def test_what_is_hidden_in_a_name_is_shown(signed_in, version, project):
    make_target(project, "x\u202egpj.exe\x1b[31m<script>")
    text = signed_in().post(ADDRESS, given(targets=["x\u202egpj.exe\x1b[31m<script>"]), headers=FETCHED)
    assert "\u202e" not in parse(text)
    assert "<script>" not in text.content.decode()
    assert "--target" in parse(text)


def test_a_press_chooses_what_failed_and_keeps_the_rest(signed_in, large):
    client = signed_in()
    form = given(suite="large", trials="5")
    del form["judge"]
    page = parse(client.post(ADDRESS, form | {"tags": "smoke", "pick": "failed"}))
    assert [name for name, chosen in page.choices("Scenarios").items() if chosen] == ["c"]
    assert "c failed last time, smoke" in page
    assert not any(page.choices("With any of these tags").values())
    assert "Start 5 trials" in page.buttons
    assert not page.field("Run the judge where configured").is_checked
    assert "Start 30 trials" in parse(client.post(ADDRESS, form | {"only": "c", "pick": "all"})).buttons


def test_scenarios_follow_the_suite(signed_in, version, large):
    client = signed_in()
    form = given(planned_suite="large", only=["a", "export"], tags=["smoke", "gone"])
    (part,) = parse(client.post(ADDRESS, form, headers=FETCHED)).all("#scenarios")
    assert part["hx-swap-oob"] == "true"
    assert part.choices("Scenarios") == {"create": False, "export": True}
    unchanged = parse(client.post(ADDRESS, given(planned_suite="basics"), headers=FETCHED))
    assert unchanged.all("#scenarios") == []
    whole = parse(client.post(ADDRESS, {**form, "plan": "yes"}))
    assert "Start 3 trials" in whole.buttons, "without a script, too"


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
    form = given(
        suite="second",
        planned_suite="basics",
        guidance=str(foreign.pk),
        baseline_run=str(other.pk),
        lift="on",
        previous=str(foreign.number + 1),
    )
    client = signed_in()
    plan = parse(client.post(ADDRESS, form, headers=FETCHED))
    assert [each["value"] for each in plan.all("#guidance [name=guidance]")] == ["", str(own.pk)]
    (baselines,) = plan.all("select[hx-swap-oob]")
    (previous,) = plan.all("#lift-fields select")
    assert [each["value"] for each in baselines.all("option")] == ["", "last-pass", str(baseline.pk)]
    assert [each["value"] for each in previous.all("option")] == ["", "none", str(own.number)]
    assert "Second has no skill, so there is no lift." in plan
    plan = parse(client.post(ADDRESS, {**form, "lift": ""}, headers=FETCHED))
    assert "Start 6 trials" in plan
    again = client.post(ADDRESS, {**form, "planned_suite": "second"}, headers=FETCHED)
    assert parse(again).all("select[hx-swap-oob]") == []


def test_a_lift_is_offered_for_a_suite_with_a_skill(signed_in, version, project):
    skilled = make_suite(project, name="Skilled")
    skill = make_guidance(skilled.suite)
    skill.files = [{"path": ".claude/skills/stock/SKILL.md", "content": "# Stock"}]
    skill.save()
    Upload.objects.filter(suite=skilled.suite).update(guidance=skill)
    client = signed_in()

    def offers(page) -> bool:
        return [each["name"] for each in parse(page).all("#lift-fields :is(input, select)")] == [
            "lift",
            "previous",
        ]

    assert offers(client.get(f"{ADDRESS}?suite=skilled"))
    assert not offers(client.get(f"{ADDRESS}?suite=basics"))
    assert offers(client.get(f"{ADDRESS}?suite=basics&lift=on"))
    for suite, other in (("skilled", "basics"), ("basics", "skilled")):
        plan = client.post(ADDRESS, given(suite=suite, planned_suite=other), headers=FETCHED)
        assert offers(plan) == (suite == "skilled")


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
