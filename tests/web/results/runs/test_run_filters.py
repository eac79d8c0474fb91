"""Filters of the runs page: what each leaves, and how to drop it."""

from __future__ import annotations

from datetime import UTC, datetime

from runs.models import Run
from tests.builders import make_guidance, make_member, make_run, make_suite, make_target
from tests.web.results.runs.pages import ADDRESS, numbers
from tests.web.screen import parse


def test_it_names_the_filter_that_matches_nothing(signed_in, version):
    make_run(version)
    text = signed_in().get(f"{ADDRESS}?tag=release").content.decode()
    assert "No run matches tag “release”. Found 1 run without tag." in parse(text)


def test_it_filters_by_each_column(signed_in, project, version):
    make_run(version, tags=["nightly-x"])
    other = make_suite(project, name="Second")
    guidance = make_guidance(other.suite)
    changes = {
        "model": "gpt-5",
        "tool_version": "2.4.0",
        "tags": ["nightly"],
        "outcome": "fail",
        "guidance": guidance,
    }
    wanted = make_run(other, target=make_target(project, "codex"), **changes)
    client = signed_in()
    texts = (f"q={text}" for text in ("second", "2.4.0", wanted.pk))
    chosen = (
        "suite=second",
        "target=codex",
        "model=gpt-5",
        "tag=nightly",
        "state=fail",
        "tool_version=2.4.0",
    )
    for query in (*texts, *chosen, f"guidance={guidance.pk}"):
        assert numbers(client.get(f"{ADDRESS}?{query}")) == [wanted.pk], query


def test_a_tag_is_found_as_it_is_written(signed_in, version):
    make_run(version, tags=["axb", "other"])
    client = signed_in()
    for tag in ("nächtlich", 'say "so"', "C:\\runs", "100%", "a_b", "夜"):
        wanted = make_run(version, tags=["first", tag])
        for name in ("tag", "q"):
            assert numbers(client.get(ADDRESS, {name: tag})) == [wanted.pk], (name, tag)


def test_the_text_of_a_filter_is_not_sought_between_tags(signed_in, version):
    make_run(version, tags=["first", "other", "nächtlich"])
    make_run(version)
    client = signed_in()
    for text in ("[", '"', ", ", "\\", "u00e4", "first other"):
        assert numbers(client.get(ADDRESS, {"q": text})) == [], text


def made(version, day, **changes):
    run = make_run(version, **changes)
    run.created = datetime(2026, 11, day, tzinfo=UTC)
    run.save()
    return run.pk


def test_it_filters_by_the_first_day(signed_in, version):
    made(version, 8)
    wanted = [made(version, 10), made(version, 9)]
    response = signed_in().get(f"{ADDRESS}?since=2026-11-09")
    assert numbers(response) == sorted(wanted, reverse=True)
    assert "since 9 Nov 2026" in parse(response)


def test_it_filters_by_the_last_day_which_counts_whole(signed_in, version):
    wanted = [made(version, 8), made(version, 9)]
    Run.objects.filter(pk=wanted[1]).update(created=datetime(2026, 11, 9, 23, 59, tzinfo=UTC))
    made(version, 10)
    response = signed_in().get(f"{ADDRESS}?until=2026-11-09")
    assert numbers(response) == sorted(wanted, reverse=True)


def test_any_of_several_values_matches(signed_in, project, version):
    grace, ada = make_member(project, "runner", "grace"), make_member(project, "runner", "ada")
    runs = {
        "a": make_run(version, tags=["a"], outcome="pass", tool_version="1"),
        "b": make_run(version, tags=["b"], outcome="fail", tool_version="2", by=grace),
        "c": make_run(version, tags=["c"], outcome="error", tool_version="3", by=ada),
    }
    client = signed_in()
    for query, matches in (
        ("tag=a&tag=b", "ab"),
        ("state=pass&state=error", "ac"),
        ("tool_version=1&tool_version=2", "ab"),
        ("by=grace&by=ada", "bc"),
        ("tag=a&tag=b&state=pass", "a"),
    ):
        wanted = [runs[each].pk for each in reversed(matches)]
        assert numbers(client.get(f"{ADDRESS}?{query}")) == wanted, query


def test_each_value_is_removed_alone(signed_in, version):
    make_run(version, tags=["a"])
    page = parse(signed_in().get(f"{ADDRESS}?tag=a&tag=b&col=judge"))
    removals = [each.address for each in page.all("[aria-label='Remove the filter tag']")]
    assert removals == ["?tag=b&col=judge", "?tag=a&col=judge"]


def test_an_invalid_day_is_ignored(signed_in, version):
    run = make_run(version)
    client = signed_in()
    for since in ("soon", "2026-13-01", "0", "<b>"):
        response = client.get(ADDRESS, {"since": since})
        assert numbers(response) == [run.pk], since
        assert "Clear the filters" not in parse(response), since


def test_a_filter_in_force_can_be_removed_alone(signed_in, version):
    make_run(version, tags=["a&b"])
    page = parse(signed_in().get(ADDRESS, {"suite": "basics", "tag": "a&b"}))
    assert "suite Basics" in page
    assert page.link("Remove the filter suite").address == "?tag=a%26b"
    assert page.link("Remove the filter tag").address == "?suite=basics"


def test_it_suggests_a_filter_to_remove(signed_in, version):
    make_run(version, outcome="fail", tags=["nightly"])
    query = "tag=release&state=fail"
    page = parse(signed_in().get(f"{ADDRESS}?{query}"))
    assert "No run matches tag “release”, state “failed”. Found 1 run without tag." in page
    assert page.link("Remove tag").address == "/p/tools/runs/?state=fail"


def test_tool_versions_to_choose_are_the_newest_first(signed_in, version):
    for tool in ("2.9", "2.10", "2.9", ""):
        make_run(version, tool_version=tool)
    choices = parse(signed_in().get(f"{ADDRESS}?tool_version=2.9")).choices("Tool version")
    assert list(choices.items()) == [("2.9", True), ("2.10", False)]


def test_an_unlisted_tool_version_stays_selected(signed_in, version):
    make_run(version, tool_version="2.4.0")
    page = parse(signed_in().get(ADDRESS, {"tool_version": "<b>1.0"}))
    assert page.choices("Tool version") == {"2.4.0": False, "<b>1.0": True}
    assert "No run matches tool version “<b>1.0”. Found 1 run without tool version." in page


def test_an_unlisted_model_stays_selected(signed_in, version):
    make_run(version, model="small")
    page = parse(signed_in().get(ADDRESS, {"model": "<b>large"}))
    assert page.choices("Model") == {"small": False, "<b>large": True}


def test_it_finds_runs_that_are_not_over(signed_in, version):
    make_run(version)
    queued = make_run(version, state="queued")
    assert numbers(signed_in().get(f"{ADDRESS}?state=open")) == [queued.pk]
