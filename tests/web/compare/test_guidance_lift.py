"""What a skill adds: the comparison of a skill with no skill, and how one is started."""

from __future__ import annotations

import pytest
from django.db import transaction

from runs.compare.comparison import compare_with_baseline
from runs.models import Launch, Run, Trial
from scenarios.models import Guidance, Upload
from scenarios.storing import guidance_files, guidance_hash
from tests.builders import close, make_guidance, make_run, make_target, make_trial
from tests.web.screen import main_of

pytestmark = pytest.mark.one_database
SKILL = {"path": ".agents/skills/tool/SKILL.md", "content": "- export: `tool export`\n"}
AGENTS = {"path": "AGENTS.md", "content": "# Use\n"}
HOLDS = {
    # Without and with the skill, in each of six trials.
    "it_exported": ((0,) * 6, (1,) * 6),
    "nothing_failed": ((1,) * 6, (1,) * 6),
    "it_is_beautiful": ((0,) * 6, (0,) * 6),
    "it_is_short": ((1, 0, 1, 0, 1, 0), (1,) * 6),
}


def version_with(suite, name: str, *files: dict[str, str]) -> Guidance:
    guidance = make_guidance(suite, name)
    guidance.files = list(files)
    guidance.sha256 = guidance_hash(guidance_files(guidance))
    guidance.save()
    return guidance


@pytest.fixture
def arms(version):
    """Return no skill and the skill after a launch of both, in which the skill helps on export and costs more there."""
    arms = (
        version_with(version.suite, "no skill", AGENTS),
        version_with(version.suite, "skill", SKILL, AGENTS),
    )
    Upload.objects.create(suite=version.suite, suite_version=version, guidance=arms[1])
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    for side, guidance in enumerate(arms):
        run = make_run(version, guidance=guidance, launch=launch, options={"lift": True})
        for n in range(6):
            scores = [
                {"layer": "judge", "name": f"criterion.{name}", "value": float(values[side][n])}
                for name, values in HOLDS.items()
            ]
            make_trial(run, "create", outcome="pass", scores=[], cost_usd=0.10 + 0.001 * n)
            make_trial(
                run,
                "export",
                outcome="pass" if side else "fail",
                scores=scores,
                cost_usd=(0.30 if side else 0.10) + 0.001 * n,
            )
        close(run)
    return arms


@pytest.fixture
def previous(arms, version):
    """Return an older version of the skill that ran beside both arms and passed a case less often."""
    older = version_with(version.suite, "older skill", {**SKILL, "content": "Run `tool`.\n"}, AGENTS)
    skill = Run.objects.get(guidance=arms[1])
    Run.objects.filter(guidance=arms[1]).update(arm="new", reference=Run.objects.get(guidance=arms[0]))
    beside = {"arm": "previous", "reference": Run.objects.get(guidance=arms[0]), "options": {"lift": True}}
    run = make_run(version, guidance=older, launch=skill.launch, **beside)
    for n in range(6):
        make_trial(run, "create", outcome="pass", scores=[], cost_usd=0.10 + 0.001 * n)
        make_trial(run, "export", outcome="fail", scores=[], cost_usd=0.10 + 0.001 * n)
    close(run)
    return older


def points_of(page) -> list[str]:
    """Return the rows of the picture whose changes are points."""
    tables = page.region("Measures at a glance").all("table")
    (points,) = (each for each in tables if each.get("aria-label") == "Changes in points")
    return [each.text for each in points.all("tbody th")]


@pytest.fixture
def page_of(signed_in):
    """Return a function that opens the comparison of two versions."""
    return lambda before, after: main_of(
        signed_in().get(f"/p/tools/guidance/{before.pk}/against/{after.pk}/")
    )


def test_the_answer_is_one_sentence_with_intervals_and_cases_and_heads_the_page(arms, page_of):
    page = page_of(*arms)
    lift = page.region("Lift").text
    assert "the skill adds 50 points of pass rate" in lift
    assert "pass rate 50 % without it, 100 % with it" in lift
    assert "cost per trial +" in lift
    assert "It helps on export." in lift
    assert "previous version" not in lift and "benchmark.json" not in lift
    assert points_of(page) == ["local: without → with the skill", "Pass rate"]
    assert page.headings[0] == "Basics: 50 % → 100 % on local improved"
    assert page.headings.index("Statements") < page.headings.index("Exposure")
    assert page.headings[-2:] == ["What changed in the text", ".agents/skills/tool/SKILL.md"]
    row = page.table("Dearer cases").row("export")
    assert row.texts[:5] == ["export", "Cost per trial", "$0.10", "$0.30", "+195 %"]


def test_a_lift_whose_skill_no_trial_opened_says_so_first(arms, page_of):
    trials = Trial.objects.filter(run__guidance=arms[1])
    for exposure, source, said in (
        ({"opened": False}, "stream", True),
        ({"opened": True}, "stream", False),
        # A text doesn't tell what was opened; a file in the agent's context needs no opening.
        ({"opened": False}, "transcript", False),
        ({"opened": False, "in_context": True}, "stream", False),
    ):
        trials.update(detail={"exposure": exposure, "interaction": {"source": source}})
        sentence = page_of(*arms).region("Lift").text.partition("On ")[0]
        assert ("No trial opened the skill." in sentence) is said, (exposure, source)
    trials.update(detail={"exposure": {"opened": False}, "interaction": {"source": "stream"}})
    opened = trials.first()
    opened.detail["exposure"]["opened"] = True
    opened.save()
    assert "No trial opened" not in page_of(*arms).region("Lift").text


def test_the_answer_says_what_changed_since_the_previous_version_and_draws_it(arms, previous, page_of):
    page = page_of(*arms)
    lift = page.region("Lift").text
    assert "Against the previous version, older skill: improved, pass rate +50 points" in lift
    assert "50 % with that version, 100 % with this one" in lift
    assert "The change helps on export." in lift
    assert points_of(page) == [
        *("local: without → with the skill", "Pass rate"),
        *("local: previous version, older skill → this one", "Pass rate"),
    ]


def test_the_answer_says_what_benchmark_json_says(arms, page_of):
    run = Run.objects.get(guidance=arms[1])
    Run.objects.filter(pk=run.pk).update(options={**run.options, "benchmark": {"with_skill": 0.9}})
    lift = page_of(*arms).region("Lift").text
    assert "by skill-creator's benchmark.json: 90 % with the skill (here not measured)." in lift


def test_statements_are_grouped_by_what_they_show(arms, page_of):
    table = page_of(*arms).table("Statements")
    assert [row.header for row in table.rows] == [
        "Only with the skill 1, the skill's value",
        "It exported",
        "Always holds 1, proves nothing about the skill",
        "Nothing failed",
        "Never holds 1, broken or too hard",
        "It is beautiful",
        "Flips 1, varies from trial to trial",
        "It is short",
    ]
    assert table.row("It is short").texts == [*("It is short", "export", "50 % of 6", "100 % of 6")]


@pytest.fixture
def run_with_skill(arms, version):
    """Return the run with the skill, which stored that it is better than the run without it."""
    bare, skilled = (Run.objects.get(guidance=each) for each in arms)
    for run, own in (
        (bare, {"arm": "reference"}),
        (
            skilled,
            {"arm": "new", "reference": bare, "options": {**skilled.options, "baseline": str(bare.pk)}},
        ),
    ):
        for name, value in own.items():
            setattr(run, name, value)
        run.is_experiment = True
        run.save()
    Launch.objects.filter(pk=skilled.launch_id).update(preset="lift")
    with transaction.atomic():
        compare_with_baseline(skilled)
    return skilled


def test_the_first_row_says_how_many_trials_opened_the_skill(arms, page_of):
    opened = {"exposure": {"opened": True}, "interaction": {"source": "stream"}}
    Trial.objects.filter(run__guidance=arms[1]).update(detail=opened)
    assert "Opened in 100 % 12/12 of the trials with the skill" in page_of(*arms)


def test_home_and_suite_have_a_card_with_the_answer(arms, run_with_skill, signed_in):
    client = signed_in()
    for address in ("/p/tools/", "/p/tools/suites/basics/"):
        card = main_of(client.get(address)).region("Lift of Basics on local")
        assert "Basics: 50 % → 100 % on local" in card
        assert "the skill adds 50 points of pass rate (95 % interval" in card
        compared = f"/p/tools/guidance/{arms[0].pk}/against/{arms[1].pk}/?launch={run_with_skill.launch_id}"
        assert card.link("Basics").address == compared


def test_a_lift_is_one_row_of_the_list_of_runs(arms, run_with_skill, previous, signed_in):
    Run.objects.filter(guidance=previous).update(is_experiment=True)
    page = main_of(signed_in().get("/p/tools/runs/"))
    (row,) = page.table("Runs").rows
    compared = f"/p/tools/guidance/{arms[0].pk}/against/{arms[1].pk}/?launch={run_with_skill.launch_id}"
    assert row.link("lift").address == compared
    bare = main_of(signed_in().get(f"/p/tools/runs/?guidance={arms[0].pk}"))
    assert "experiment" in bare.table("Runs").rows[0].text


def test_no_skill_is_no_version_of_the_guidance(arms, run_with_skill, signed_in):
    page = main_of(signed_in().get("/p/tools/guidance/?suite=basics"))
    assert page.headings[0] == "Only skill has run"
    assert "no skill" not in main_of(signed_in().get("/p/tools/suites/basics/")).region("Guidance")


def test_other_pairs_of_guidance_have_no_lift(arms, page_of):
    no_skill, skill = arms
    assert "Lift" not in page_of(skill, no_skill).headings


def test_the_suite_offers_to_measure_the_lift_and_the_form_starts_both_arms(version, signed_in):
    skill = version_with(version.suite, "skill", SKILL, AGENTS)
    Upload.objects.create(suite=version.suite, suite_version=version, guidance=skill)
    make_target(version.suite.project)
    client = signed_in()
    page = main_of(client.get("/p/tools/suites/basics/"))
    assert "What the skill adds" not in page.headings
    button = page.link("Measure lift…")
    form = main_of(client.get(button.address))
    assert form.field(
        "Lift: run the suite’s skill, no skill and its previous version in turn until decided what it adds"
    ).is_checked
    assert "--lift" in form
    started = client.post(
        "/p/tools/runs/new/",
        {"suite": "basics", "targets": "local", "trials": "1", "lift": "on", "start": ""},
    )
    no_skill, run = Run.objects.order_by("pk")
    assert [each["path"] for each in no_skill.guidance.files] == ["AGENTS.md"]
    assert run.guidance == skill
    assert (run.launch.preset, no_skill.arm, run.arm, run.reference) == ("lift", "reference", "new", no_skill)
    assert run.launch.stop == {"first": 3, "most": 12}
    compared = f"/p/tools/guidance/{no_skill.guidance_id}/against/{skill.pk}/?launch={run.launch_id}"
    assert started.headers["Location"] == compared
    card = main_of(client.get("/p/tools/suites/basics/")).region("Lift of Basics on local")
    assert card.link("Basics").address == compared
    assert "On local, trials still run." in card


def test_the_form_offers_the_previous_version(version, signed_in):
    older = version_with(version.suite, "older", {**SKILL, "content": "Run `tool`.\n"}, AGENTS)
    skill = version_with(version.suite, "skill", SKILL, AGENTS)
    Upload.objects.create(suite=version.suite, suite_version=version, guidance=skill)
    make_target(version.suite.project)
    client = signed_in()
    choice = main_of(client.get("/p/tools/runs/new/?suite=basics&lift=on")).field("Previous version")
    assert choice.choices == {
        "": "Last other skill",
        "none": "None",
        str(skill.number): "skill",
        str(older.number): "older",
    }
    asked = {"suite": "basics", "targets": "local", "trials": "1", "lift": "on", "start": ""}
    client.post("/p/tools/runs/new/", {**asked, "previous": "none"})
    assert Run.objects.count() == 2
    planned = main_of(client.post("/p/tools/runs/new/", {**asked, "previous": str(skill.number)}))
    assert "The previous version is the one that is measured." in planned
    started = client.post("/p/tools/runs/new/", {**asked, "previous": str(older.number)})
    no_skill, run, previous = Run.objects.order_by("pk")[2:]
    assert (previous.guidance, previous.arm, previous.reference) == (older, "previous", no_skill)
    compared = f"/p/tools/guidance/{no_skill.guidance_id}/against/{skill.pk}/?launch={run.launch_id}"
    assert started.headers["Location"] == compared


def test_a_suite_without_a_skill_has_no_lift(version, signed_in):
    guidance = version_with(version.suite, "poor", AGENTS)
    Upload.objects.create(suite=version.suite, suite_version=version, guidance=guidance)
    make_target(version.suite.project)
    assert "Measure lift…" not in main_of(signed_in().get("/p/tools/suites/basics/")).links
    planned = main_of(signed_in().get("/p/tools/runs/new/?suite=basics&lift=on"))
    assert "Basics has no skill, so there is no lift." in planned
