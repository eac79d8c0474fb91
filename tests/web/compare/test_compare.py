"""The page that compares two runs."""

from __future__ import annotations

import pytest

from runs.models import Change, Run, Target
from runs.targets.definitions import version_of
from scenarios.models import ScenarioVersion
from tests.builders import (
    close,
    make_compared,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
    make_version,
    score,
)
from tests.web.compare.compared_runs import KEYS, ran
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

ADDRESS = "/p/tools/compare/"


@pytest.fixture
def version(project):
    return make_suite(project, KEYS, name="Basics")


def compared(client, base, new):
    return client.get(f"{ADDRESS}?runs={base.pk},{new.pk}")


def narrow_by(client, base, new, show, **headers):
    """Return the scenarios that a chip leaves, and the page."""
    page = parse(client.get(f"{ADDRESS}?runs={base.pk},{new.pk}&show={show}", **headers))
    return page.table("Scenarios").row_names if "Scenarios" in page.tables else [], page


def read_statuses(client, base, new):
    """Return every scenario with how it changed, in the order of the page."""
    rows = narrow_by(client, base, new, "all")[1].table("Scenarios").rows
    return [(row.header, row.cell("Status").text.removesuffix(" not significant")) for row in rows]


def read_differences(client, base, new):
    """Return the parts of the fingerprints: label, base and new, and whether they differ."""
    rows = [row.texts for row in parse(compared(client, base, new)).table("Runs compared").rows]
    return [
        (label.removesuffix(" differs"), before, after, label.endswith(" differs"))
        for label, before, after in rows
        if label not in ("Suite, target", "Started")
    ]


def test_changed_scenarios_come_first_and_chips_count_and_narrow_them_by_the_address(signed_in, version):
    base, new = ran(version, "list"), ran(version, "export")
    removed = ran(version, keys=("create", "export"))
    client = signed_in("viewer")
    statuses = [("export", "▼ worse"), ("list", "▲ better"), ("create", "= same")]
    assert read_statuses(client, base, new) == statuses
    chips = parse(compared(client, base, new)).region("Show").all("a")
    assert [chip.text for chip in chips] == ["What differs 2", "▼ Worse 1", "▲ Better 1", "= Same 1", "All 3"]
    assert narrow_by(client, base, new, "differing")[0] == ["export", "list"]
    assert narrow_by(client, base, new, "worse")[0] == ["export"]
    assert narrow_by(client, base, new, "same")[0] == ["create"]
    assert narrow_by(client, base, new, "all")[0] == ["export", "list", "create"]
    assert narrow_by(client, base, removed, "removed")[0] == ["list"]
    assert narrow_by(client, removed, base, "incomparable")[0] == ["list"]


@pytest.mark.parametrize("outcomes", [("pass", "error"), ("error", "pass"), ("error", "error")])
def test_a_scenario_with_errors_only_is_not_compared(signed_in, version, outcomes):
    runs = [make_run(version) for _ in outcomes]
    for run, outcome in zip(runs, outcomes, strict=True):
        make_trial(run, "create", outcome=outcome)
        make_trial(run, "list", outcome="pass")
        close(run)
    client = signed_in()
    assert read_statuses(client, *runs) == [("create", "! errors only"), ("list", "= same")]
    assert narrow_by(client, *runs, "differing")[0] == []
    assert narrow_by(client, *runs, "unmeasured")[0] == ["create"]


def test_a_chip_without_scenarios_leads_back_to_all_and_one_that_does_not_exist_shows_all(signed_in, version):
    base, new = ran(version), ran(version)
    keys, text = narrow_by(signed_in(), base, new, "%3Cb%3E")
    assert len(keys) == 3
    (chosen,) = text.all("#scenarios a[aria-current]")
    assert (chosen.text, chosen.address.endswith("&show=all#scenarios")) == ("All 3", True)
    keys, text = narrow_by(signed_in(), base, new, "worse")
    assert keys == []
    assert text.link("Show all 3").address == f"?runs={base.pk},{new.pk}&show=all#scenarios"


def test_only_what_differs_is_listed_unless_all_is_chosen_and_a_chip_swaps_it(signed_in, version):
    base, new = ran(version), ran(version, "export")
    client = signed_in()
    assert parse(compared(client, base, new)).table("Scenarios").row_names == ["export"]
    same = parse(compared(client, base, ran(version)))
    assert "No scenario differs" in same
    assert same.link("Show all 3").address.endswith("&show=all#scenarios")
    asked = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "scenarios"}
    keys, text = narrow_by(client, base, new, "worse", **asked)
    assert keys == ["export"]
    assert text.all("html") == []
    assert text.headings == ["Scenarios"]


def test_a_scenario_that_only_the_base_has_lists_its_trials(signed_in, version):
    base, new = ran(version), ran(version, keys=("create",))
    text = parse(signed_in().get(f"{ADDRESS}?runs={base.pk},{new.pk}&open=list"))
    assert "Only one of the runs has trials of this scenario" in text
    trial = base.trial_set.get(scenario__key="list")
    assert text.link("trial 1").address.endswith(f"/trials/{trial.pk}/")


def test_measures_have_base_new_difference_and_n(signed_in, version):
    base, new = ran(version), ran(version, "export")
    text = parse(compared(signed_in(), base, new))
    row = text.table("Measures").row("Pass rate")
    cells = [row.cell(each).text for each in ("Base", "Sign", "New", "Difference", "Status", "n", "Trials")]
    assert cells == ["100 %", ">", "67 %", "−33 points", "too little data not significant", "3", "3 / 3"]
    assert not {"worse", "better"} & set(row.cell("Difference").classes)
    assert "So few trials can't reach a verdict, whatever they show." in text


def test_a_verdict_is_above_the_measures_whose_expert_columns_are_shown_on_demand(signed_in, version):
    base, new = ran(version, trials=6), ran(version, "export", trials=6)
    client = signed_in()
    text = parse(compared(client, base, new))
    assert "Regressed against run" in text
    assert "Pass rate −33 points" in text
    assert "1 of 3 comparable scenarios worse." in text
    assert "1 scenario broke: export. The suite's pass rate fell." in text
    row = text.table("Measures").row("Pass rate")
    assert "worse" in row.cell("Difference").classes
    assert row.cell("Status").text == "regressed"
    address = text.link("expert columns").address
    row = parse(client.get(f"{ADDRESS}{address.split('#')[0]}")).table("Measures").row("Pass rate")
    assert (row.cell("p").text, row.cell("p corrected").text) == ("0.001", "0.002")
    assert row.cell("Test").text == "permutation of trials within each scenario"
    assert row.cell("95 % interval").text.startswith("−")


def test_scenarios_that_changed_take_no_part_in_a_mean(signed_in, version):
    base, new = ran(version), ran(version, "export")
    entry = version.entries.get(scenario_version__scenario__key="export")
    later = make_version(version.suite, create={}, export={"prompt": "Other."}, list={})
    Run.objects.filter(pk=new.pk).update(suite_version=later)
    assert entry.scenario_version.task_hash
    row = parse(compared(signed_in(), base, new)).table("Measures").row("Pass rate")
    assert [row.cell(each).text for each in ("New", "n", "Trials")] == ["100 %", "2", "2 / 2"]


def test_a_measure_opens_with_its_scenarios_worst_first(signed_in, version):
    base, new = ran(version, "list", trials=2), ran(version, "export", trials=2)
    client = signed_in()
    address = parse(compared(client, base, new)).table("Measures").link("Pass rate").address
    text = parse(client.get(f"{ADDRESS}{address.split('#')[0]}"))
    rows = text.all('[aria-label="Pass rate by scenario"] tbody tr')
    assert [row.text for row in rows] == [
        "export 100 % 0 % 2 / 2", "create 100 % 100 % 2 / 2", "list 0 % 100 % 2 / 2",
    ]  # fmt: skip
    for unknown in ("nothing", "trial/nothing", "/"):
        assert client.get(f"{ADDRESS}?runs={base.pk},{new.pk}&measure={unknown}").status_code == 200


def test_how_to_read_it_is_open_until_it_is_dismissed(signed_in, version):
    base, new = ran(version), ran(version)
    client = signed_in("viewer")
    text = parse(compared(client, base, new))
    assert text.all("details.help")[0].get("open") is not None
    assert text.button("Got it, don't open again")
    answer = client.post(f"{ADDRESS}help/", {"runs": f"{base.pk},{new.pk}"})
    assert answer.url == f"{ADDRESS}?runs={base.pk},{new.pk}"
    again = parse(compared(client, base, new))
    assert again.all("details.help")[0].get("open") is None
    assert "Got it" not in again


def test_a_scenario_of_few_trials_is_tagged_as_not_significant(signed_in, version):
    few = parse(compared(signed_in(), ran(version), ran(version, "export")))
    assert few.table("Scenarios").row("export").cell("Status").text == "▼ worse not significant"
    many = parse(compared(signed_in(), ran(version, trials=9), ran(version, "export", trials=9)))
    assert many.table("Scenarios").row("export").cell("Status").text == "▼ regressed"


def test_a_stored_comparison_is_not_computed_again(signed_in, version):
    base = make_compared(version, dict.fromkeys(KEYS, "pass"), trials=6)
    new = make_compared(version, {**dict.fromkeys(KEYS, "pass"), "export": "fail"}, trials=6)
    stored = Change.objects.get(run=new, scenario=None, measure__name="pass")
    stored.detail["effect"] = -0.25
    stored.save()
    assert "Pass rate −25 points" in parse(compared(signed_in(), base, new))


def test_headline_measures_have_their_own_heading(signed_in, version):
    scores = [score("judge", "judge", 0.5), score("interaction", "error_rate", 0.5)]
    runs = [make_run(version) for _ in range(2)]
    for run in runs:
        make_trial(run, scores=scores, cost_usd=0.5)
        close(run)
    table = parse(compared(signed_in(), *runs)).table("Measures")
    found = [heading.text for heading in table.all("tbody th")]
    assert found[:6] == ["Headline", "Pass rate", "Judge score", "Error rate", "Other", "Cost per trial"]


def test_trial_totals_come_before_layers(signed_in, version):
    names = parse(compared(signed_in(), ran(version), ran(version))).table("Measures").row_names
    assert names[1] == "Pass rate"
    assert names.index("Time per trial") < names.index("Commands")


def test_a_part_unknown_in_both_fingerprints_is_left_out(signed_in, version):
    base, new = ran(version, fingerprint={"model": "", "judge": "j"}), ran(version, fingerprint={"model": ""})
    assert read_differences(signed_in(), base, new) == [("Judge", "j", "–", True)]


def test_an_edited_target_definition_is_a_difference(signed_in, version):
    def edits(before: str, after: str) -> list[tuple[str, str, str, bool]]:
        fingerprints = [{"target": "agent", "target_sha256": each} for each in (before, after)]
        base, new = (ran(version, fingerprint=each) for each in fingerprints)
        return [row for row in read_differences(signed_in(), base, new) if row[3]]

    assert edits("a" * 64, "b" * 64) == [("Target's definition", "a" * 8, "b" * 8, True)]
    assert edits("", "b" * 64) == []


def test_a_targets_edits_are_shown_by_field(signed_in, version):
    base, new = ran(version), ran(version)
    for run, definition in (
        (base, {"name": "agent", "workers": 2, "timeout_seconds": 30, "model": "small"}),
        (new, {"name": "agent", "workers": 8, "timeout_seconds": 60, "env": {"A": "x" * 400}}),
    ):
        run.target.definition = definition
        Run.objects.filter(pk=run.pk).update(target_version=version_of(run.target))
    shortened = f'{{"A": "{"x" * 400}'[:160] + "…"
    assert read_differences(signed_in(), base, new) == [
        ("Target's timeout_seconds", "30", "60", True),
        ("Target's model", "small", "–", True),
        ("Target's env", "–", shortened, True),
    ]
    assert read_differences(signed_in(), base, ran(version)) == []


def test_a_judges_edits_are_shown_by_field(signed_in, project, version):
    base, new = ran(version), ran(version)
    strict, mild = (make_target(project, name=name) for name in ("strict", "mild"))

    def judge_differences(*judges: Target) -> dict[str, tuple[str, str]]:
        for run, model in ((base, "small"), (new, "large")):
            for judge in judges:
                judge.definition = {"name": judge.name, "model": model if judge == strict else "one"}
            run.judge_versions.set([version_of(judge) for judge in judges])
        return {
            label: (before, after) for label, before, after, _ in read_differences(signed_in(), base, new)
        }

    assert judge_differences() == {}
    assert judge_differences(strict) == {"Judge's model": ("small", "large")}
    assert judge_differences(strict, mild) == {"Judge strict's model": ("small", "large")}
    base.judge_versions.clear()
    assert read_differences(signed_in(), base, new) == []


def test_what_differs_is_said_before_any_number(signed_in, version):
    base = ran(version, fingerprint={"judge": "j", "tool_version": "1.0"})
    new = ran(version, fingerprint={"judge": "j", "tool_version": "2.0"})
    response = compared(signed_in(), base, new)
    assert read_differences(signed_in(), base, new) == [
        ("Tool", "1.0", "2.0", True),
        ("Judge", "j", "j", False),
    ]
    text = response.content.decode()
    assert text.index("What differs") < text.index("forest-table")
    assert text.count(">differs<") == 1


def test_scenarios_with_changed_gates_are_not_comparable(signed_in, version):
    after = make_version(version.suite, create={}, export={}, list={})
    after.scenario_versions.filter(scenario__key="export").update(gates_hash="other")
    base, new = ran(version), ran(after, keys=("create", "export"))
    text = parse(signed_in().get(f"{ADDRESS}?runs={base.pk},{new.pk}&show=all"))
    assert "1 of 3 scenarios comparable" in text
    assert "! 1 in only one run." in text
    assert "! gates changed" in text.table("Scenarios").row("export")
    assert "! 1 scenario not comparable: gates changed." in text


def test_scenarios_of_a_run_without_judges_are_not_comparable(signed_in, version):
    ScenarioVersion.objects.filter(scenario__key="export").update(judge_hash="j")
    base = ran(version, fingerprint={"judge": "strict", "judge_sha256": "1" * 64})
    new = ran(version, "export", options={"judge": False})
    text = parse(signed_in().get(f"{ADDRESS}?runs={base.pk},{new.pk}&show=all"))
    assert "2 of 3 scenarios comparable" in text
    assert "! 1 scenario not comparable: judge model changed." in text


def test_runs_without_a_common_scenario_show_both_rates(signed_in, version, project):
    base, new = (
        make_compared(version, {"create": "pass"}, trials=3),
        make_run(make_suite(project, ("other",))),
    )
    make_trial(new, "other", outcome="fail")
    verdict = parse(compared(signed_in(), base, close(new))).region("Verdict")
    assert "Not comparable" in verdict and "No scenario of both runs can be compared." in verdict
    assert f"Run {base.pk}: pass rate 100 % (3/3, 95 % interval 44 % to 100 %)" in verdict
    assert f"Run {new.pk}: pass rate 0 % (0/1, 95 % interval 0 % to 79 %)." in verdict


def test_selected_runs_are_compared_older_first(signed_in, version):
    base, new = ran(version), ran(version)
    response = signed_in().get(f"{ADDRESS}?runs={new.pk}&runs={base.pk}")
    assert response.url == f"{ADDRESS}?runs={base.pk},{new.pk}"


def test_choosing_no_runs_asks_for_two(signed_in):
    assert "Select the runs in the list" in parse(signed_in().get(ADDRESS))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("{base}", "Run {base} needs another run to be compared with."),
        ("{base},{base}", "Run {base} needs another run to be compared with."),
        ("{base},x", "“x” is not a run number."),
        ("{base},999999", "There is no run 999999 in this project."),
        (",".join(map(str, range(1, 12))), "You can compare at most 10 runs; 11 are selected."),
    ],
)
def test_anything_but_two_to_ten_runs_is_refused(signed_in, version, asked, sentence):
    base = ran(version)
    response = signed_in().get(ADDRESS + "?runs=" + asked.format(base=base.pk))
    assert response.status_code == 404
    assert sentence.format(base=base.pk) in parse(response)


def test_a_run_is_added_by_its_number(signed_in, version):
    base, new, third = ran(version), ran(version), ran(version)
    response = signed_in().get(f"{ADDRESS}?runs={base.pk},{new.pk}&add={third.pk}")
    assert response.url == f"{ADDRESS}?runs={base.pk},{new.pk},{third.pk}"


def test_another_projects_run_is_not_compared(signed_in, version):
    stranger = ran(make_suite(make_project("other"), KEYS))
    assert compared(signed_in(), ran(version), stranger).status_code == 404


def test_it_makes_as_many_queries_for_many_scenarios(signed_in, version, django_assert_max_num_queries):
    base, new = ran(version), ran(version)
    client = signed_in()
    # Session and user, the runs, further trials, samples, trials, judges, measures (2), menus; the line of the newer run.
    with django_assert_max_num_queries(20):
        compared(client, base, new)


def test_a_forest_shows_better_to_the_right(signed_in, version):
    base = ran(version)
    new = ran(version, "export")
    page = parse(compared(signed_in(), base, new))
    row = page.all(".forest-table tbody tr")[0]
    assert "Pass rate 100 % → 67 % −33 points" in row.text
    (picture,) = row.all("svg")
    zero, dot = picture.all("line.zero")[0], picture.all("circle.est")[0]
    assert float(dot["cx"]) < float(zero["x1"])
