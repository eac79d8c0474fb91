"""Guidance: versions, two compared, and what can be tried."""

from __future__ import annotations

import pytest

from evalhub.teams.models import AuditEvent
from runs.compare.guidance_page.views import render_markdown
from runs.models import Launch, Run, Trial
from runs.review.overruling import overrule
from scenarios.models import Guidance
from tests.builders import (
    close,
    make_guidance,
    make_member,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_trial,
)
from tests.trial_parts import make_judging
from tests.web.launch.form import ADDRESS, given
from tests.web.screen import parse

pytestmark = pytest.mark.one_database

LIST = "/p/tools/guidance/"


def written(suite, name: str, text: str) -> Guidance:
    guidance = make_guidance(suite, name)
    guidance.files = [{"path": "AGENTS.md", "content": text}]
    guidance.save()
    return guidance


@pytest.fixture
def pair(version):
    return (
        written(version.suite, "poor", "# Use\n\n- export: `tool export --all`\n"),
        written(version.suite, "good", "# Use\n\n- export: `tool export --format json`\n"),
    )


@pytest.fixture
def compared(version, pair):
    """Return the trials of both sides, in which B quotes its new line."""
    launch = Launch.objects.create(project=version.suite.project, trigger="web")
    trials = []
    for guidance, outcome in zip(pair, ("fail", "pass"), strict=True):
        quote = {"path": "AGENTS.md", "line": 3, "event": 0}
        reached = {"delivered": True, "in_context": True, "opened": False, "quoted": True, "quotes": [quote]}
        run = make_run(version, guidance=guidance, launch=launch)
        for key in ("create", "export"):
            for _ in range(5):
                trials.append(make_trial(run, key, outcome=outcome, detail={"exposure": reached}))
            make_judging(trials[-1], content={"reasoning": f"{guidance} on {key}"})
        close(run)
    return trials


@pytest.mark.parametrize(
    ("text", "absent", "present"),
    [
        ("<script>alert(1)</script>", "<script", "&lt;script"),
        ("<img src=x onerror=alert(1)>", "<img", "&lt;img"),
        ("[click](javascript:alert(1))", "href", "click"),
        ("[click](JaVaScRiPt:alert(1))", "href", "click"),
        ("[click](data:text/html,x)", "href", "click"),
        ("![beacon](https://example.org/x.png)", "<img", "beacon"),
        ('[a](https://example.org/"onclick="x)', 'onclick="x', "example.org"),
        ("[a](https://example.org/)", "javascript", 'rel="nofollow noreferrer"'),
        ("# Title", "<h1", "<h3>Title</h3>"),
    ],
)
def test_no_html_of_a_document_gets_through(text, absent, present):
    html = render_markdown(text)
    assert absent not in html
    assert present in html


def test_the_list_shows_versions_of_a_suite(signed_in, pair, project):
    make_guidance(make_suite(project, name="Second").suite, "foreign")
    page = parse(signed_in().get(f"{LIST}?suite=basics"))
    assert [name.split()[0] for name in page.table("Guidance").row_names] == ["good", "poor"]
    assert "foreign" in parse(signed_in().get(f"{LIST}?suite=second"))


def test_a_version_is_shown_rendered_and_raw(signed_in, pair):
    page = parse(signed_in().get(f"{LIST}{pair[0].pk}/"))
    assert "tool export --all" in page
    assert "- export: `tool" not in page
    assert "- export: `tool export --all`" in parse(signed_in().get(f"{LIST}{pair[0].pk}/?part=raw"))
    assert "estimated: characters / 4" in page


def test_a_version_names_the_run_that_laid_it(signed_in, pair, version):
    pair[1].laid_file, pair[1].laid_path = "good.md", "AGENTS.md"
    pair[1].save()
    run = make_run(version, guidance=pair[1])
    facts = parse(signed_in().get(f"{LIST}{pair[1].pk}/")).facts
    assert "AGENTS.md" in facts["Laid over"] and f"run {run.pk}" in facts["Laid over"]
    assert "laid over AGENTS.md" in parse(signed_in().get(f"/p/tools/runs/{run.pk}/"))


def test_a_name_can_be_changed(signed_in, pair):
    client = signed_in("author")
    form = parse(client.get(f"{LIST}{pair[0].pk}/")).region("Change what it is called")
    assert form.form_data.keys() >= {"name", "was"}
    client.post(form["action"], {**form.form_data, "name": " First  try "})
    assert Guidance.objects.get(pk=pair[0].pk).name == "First try"
    assert AuditEvent.objects.get(action="guidance.rename").detail == {"was": "poor"}


@pytest.mark.parametrize(
    ("name", "was", "sentence"),
    [
        ("mine", "older", "Somebody changed the name in the meantime. It is now “poor”."),
        ("good", "poor", "Another version of Basics is called “good”."),
        ("x" * 121, "poor", "A name has at most 120 printable characters."),
    ],
)
def test_a_wrong_name_is_refused(signed_in, pair, name, was, sentence):
    refused = signed_in().post(f"{LIST}{pair[0].pk}/", {"name": name, "was": was})
    assert refused.status_code == 422
    assert sentence in parse(refused)
    assert Guidance.objects.get(pk=pair[0].pk).name == "poor"


@pytest.mark.parametrize(
    "address", ["{foreign}/", "{own}/against/{foreign}/", "{own}/against/{own}/", "999/"]
)
def test_other_guidance_is_not_found(signed_in, pair, address):
    other = make_guidance(make_suite(make_project("other")).suite)
    path = LIST + address.format(own=pair[0].pk, foreign=other.pk)
    assert signed_in().get(path).status_code == 404


def test_two_versions_are_compared(signed_in, pair, compared):
    page = parse(signed_in().get(f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"))
    assert "Pass rate +100 points" in page.region("Verdict")
    assert "started together, trials in turn" in page
    assert "export in B" in page.table("AGENTS.md").text
    assert "poor on export" in page and "good on export" in page
    assert "10/10" in page.table("Exposure").row("Quoted").text


def test_who_opened_a_document_is_in_a_fold_below_the_difference(signed_in, pair, version):
    for guidance, outcome in zip(pair, ("fail", "pass"), strict=True):
        run = make_run(version, guidance=guidance)
        reached = {"delivered": True, "opened": True, "opened_paths": ["AGENTS.md"]}
        for key in ("create", "export"):
            make_trial(run, key, outcome=outcome, detail={"exposure": reached})
        close(run)
    page = parse(signed_in().get(f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"))
    section = page.region("What changed in the text")
    assert "Opened by 2 scenarios in A and 2 scenarios in B, a trial of each" in section
    assert section.text.index("tool export --format json") < section.text.index("Opened by")
    assert "create in B" in section.links


@pytest.mark.parametrize(
    ("role", "pressed", "said"),
    [
        ("author", "Adopt as the suite's guidance", ""),
        ("viewer", "", "An author can adopt good as the suite's guidance."),
    ],
)
def test_an_improvement_has_a_next_step(signed_in, pair, compared, role, pressed, said):
    address = f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"
    page = parse(signed_in(role).get(address))
    assert (pressed in page.buttons) is bool(pressed)
    assert said in page
    swapped = parse(signed_in(role).get(f"{LIST}{pair[1].pk}/against/{pair[0].pk}/"))
    runs = [Run.objects.get(guidance=each).pk for each in pair[::-1]]
    assert swapped.links["Show where it differs"] == f"/p/tools/compare/?runs={runs[0]},{runs[1]}#scenarios"


def test_a_comparison_is_read_as_it_was_stored(signed_in, pair, compared, django_assert_max_num_queries):
    client, address = signed_in(), f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"
    first = parse(client.get(address))
    Trial.objects.update(detail={})
    with django_assert_max_num_queries(9):
        again = parse(client.get(address))
    assert again.region("Results").text == first.region("Results").text
    assert "10/10" in again.table("Exposure").row("Quoted").text


def test_an_overruled_score_changes_a_stored_comparison(signed_in, pair, compared, project):
    client, address = signed_in(), f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"
    client.get(address)
    position = next(at for at, each in enumerate(compared[-1].scores) if each["layer"] == "gates")
    overrule(compared[-1], position, passed=False, reason="The file is empty.", by=make_member(project))
    assert "Pass rate +90 points" in parse(client.get(address)).region("Verdict")


def test_a_changed_threshold_changes_a_stored_comparison(signed_in, pair, compared, project):
    client, address = signed_in(), f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"
    assert "Improved" in parse(client.get(address)).region("Verdict")
    project.smallest_effects = {"trial/pass": 2.0, "judge/judge": 2.0}
    project.save()
    assert "Improved" not in parse(client.get(address)).region("Verdict")


def test_exposure_is_counted_over_every_compared_run(signed_in, pair, version):
    for guidance in (pair[0], *[pair[1]] * 7):
        run = make_run(version, guidance=guidance)
        make_trial(run, "create", detail={"exposure": {"delivered": True, "opened": True, "quoted": False}})
        close(run)
    page = parse(signed_in().get(f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"))
    assert "7/7" in page.table("Exposure").row("Opened").text


def test_versions_without_runs_say_how_to_get_some(signed_in, pair):
    page = parse(signed_in().get(f"{LIST}{pair[0].pk}/against/{pair[1].pk}/"))
    assert "No runs to compare" in page


def test_a_page_of_two_versions_has_few_queries(signed_in, pair, compared, django_assert_max_num_queries):
    client = signed_in()
    # The first visit computes and stores the comparison.
    client.get(LIST)
    for address, most in (
        (LIST, 16),
        (f"{LIST}{pair[0].pk}/", 10),
        (f"{LIST}{pair[0].pk}/against/{pair[1].pk}/", 9),
    ):
        with django_assert_max_num_queries(most):
            client.get(address)


def test_several_versions_are_one_launch(signed_in, pair, project):
    make_target(project)
    keys = [str(each.pk) for each in pair]
    started = signed_in().post(ADDRESS, given(start="yes", guidance=keys))
    launch = Launch.objects.get()
    assert [run.guidance for run in launch.runs.order_by("pk")] == list(pair)
    assert started.url == f"{LIST}{keys[0]}/against/{keys[1]}/?launch={launch.pk}"
    page = parse(signed_in().get(started.url))
    assert "No comparable trials on both sides yet." in page
    assert "12 trials left" in page


def test_an_edited_text_is_a_new_version(signed_in, pair, project):
    make_target(project)
    key = str(pair[0].pk)
    form = parse(signed_in().get(f"{ADDRESS}?suite=basics&guidance={key}&edit={key}"))
    text = pair[0].files[0]["content"]
    assert text.strip() in form.field("Text of the document").node.text
    fields = {"guidance": key, "edit": key, "document_path": "AGENTS.md"}
    signed_in().post(ADDRESS, given(start="yes", document_text=text.replace("\n", "\r\n"), **fields))
    assert Run.objects.count() == 1, "an unchanged text isn't a version"
    planned = parse(signed_in().post(ADDRESS, given(document_text=text + "More.", **fields)))
    assert f"guidance {pair[1].number + 1}" in planned.table("Planned runs").text
    signed_in().post(ADDRESS, given(start="yes", document_text=text + "More.", **fields))
    assert [run.guidance.files[0]["content"] for run in Run.objects.order_by("pk")[1:]] == [
        text,
        text + "More.",
    ]
