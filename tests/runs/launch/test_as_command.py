"""The command that a page shows starts the same runs."""

from __future__ import annotations

import shlex

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.launch.command_line import as_command
from runs.launch.new_run_page.forms import RunForm
from runs.launch.new_run_page.run_choices import run_choices
from runs.launch.request import plan, request_runs
from runs.launch.selection import ProjectReader
from runs.models import Launch
from runs.models.run import Trigger
from tests.builders import make_guidance, make_project, make_run, make_suite, make_target
from tests.commands.calling import call

pytestmark = [pytest.mark.django_db, pytest.mark.one_database]
HOSTILE = "--target 'x' $(rm -rf /) \"quoted\"; é·\nnext"


@pytest.fixture(params=["default", "tools"])
def project(request):
    return make_project(request.param)


@pytest.fixture
def version(project):
    for name in ("local", "claude-code · sonnet", HOSTILE, "-1"):
        make_target(project, name)
    return make_suite(project, ("a", "b", "--c"), name="Basics", tags=["smoke", "--all"], tier=1)


def asked(project, version, **fields):
    """Return the form's request and the command line that does the same."""
    given = QueryDict(mutable=True)
    for name, value in {
        "suite": version.suite.slug,
        "targets": ["local"],
        "trials": "1",
        "judge": "on",
        "retest": "on",
        **fields,
    }.items():
        given.setlist(name, value if isinstance(value, list) else [value])
    offer = run_choices(project, now=timezone.now())
    form = RunForm(offer, given)
    assert form.is_valid(), form.errors
    return form.request(), as_command(form.asked, form.request(), offer.guidance_of(form.version.suite))


def stored(launch):
    """Return what the runs of a launch are, but for who asked and when."""
    return [
        {
            "what": (run.suite_version_id, run.target_id, run.model, run.guidance_id),
            "how": (run.options, run.concurrency, run.tags, run.branch, run.commit, run.tool_version),
            "trials": list(run.trial_set.order_by("position").values_list("scenario_version", "index")),
        }
        for run in launch.runs.order_by("pk")
    ]


def runs_of_page(request, project):
    return stored(request_runs(project, request, by=None, trigger=Trigger.WEB, wake=False))


def runs_of_command(line):
    """Return the runs that the command makes when a shell hands it the line."""
    name, *words = shlex.split(line)
    assert name == "manage.py"
    called = call(*words)
    assert called.code == 0, called.err
    return stored(Launch.objects.latest("pk"))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"trials": "7", "concurrency": "3"},
        {"targets": ["claude-code · sonnet", HOSTILE, "-1"]},
        {"models": "gpt-5, -o3, it's mine"},
        {"tags": "smoke,other", "tier": "1", "only": "a, --c"},
        {"tags": "--all", "tier": "2"},
        {"run_tags": "nightly, --x, two words"},
        {"judge": []},
        {"priority": "low"},
        {"timeout_seconds": "90"},
        {"timeout_seconds": "0.25", "baseline": "last-pass"},
    ],
    ids=[
        "least",
        "numbers",
        "targets",
        "models",
        "scenarios",
        "a tag with dashes",
        "run tags",
        "no judge",
        "a priority",
        "a time limit",
        "last pass",
    ],
)
def test_the_command_makes_the_runs_that_the_page_makes(project, version, fields):
    request, line = asked(project, version, **fields)
    assert runs_of_command(line) == runs_of_page(request, project)


def test_the_command_names_time_limit_and_baseline(project, version):
    before = make_run(version)
    request, line = asked(project, version, timeout_seconds="90.0", baseline=str(before.pk))
    assert f" --timeout-seconds 90 --baseline {before.pk}" in line
    assert runs_of_command(line) == runs_of_page(request, project)


@pytest.mark.parametrize("names", [("AGENTS.md v1", "AGENTS.md v2"), ("", ""), ("{second}", "")])
def test_the_command_takes_the_guidance_that_was_chosen(project, version, names):
    first = make_guidance(version.suite, "")
    second = make_guidance(version.suite, names[1])
    # A guidance may be called like another one's number.
    first.name = names[0].format(second=second.number)
    first.save()
    for chosen in (first, second):
        request, line = asked(project, version, guidance=str(chosen.pk))
        (run,) = runs_of_command(line)
        assert run["what"][3] == chosen.pk
        assert [run] == runs_of_page(request, project)


def test_what_is_not_asked_for_is_left_out(project, version):
    _, line = asked(project, version)
    own = "" if project.slug == "default" else f" --project {project.slug}"
    assert line == f"manage.py run_scenarios basics{own} --target local"


def test_the_last_upload_is_what_both_run(project, version):
    newer = make_suite(project, ("z",), name="Other")
    newer.suite.uploads.update(suite=version.suite)
    newer.suite, newer.number = version.suite, 2
    newer.save()
    version.suite.uploads.create(suite_version=version)
    request, line = asked(project, version)
    assert [each.pk for each in request.suite_versions] == [version.pk]
    assert runs_of_command(line) == runs_of_page(request, project)


def test_what_is_known_is_not_read_again(project, version):
    request, _ = asked(project, version, targets=["local", "-1"])
    offer = run_choices(project, now=timezone.now())
    reader = ProjectReader(project, targets=[each.target for each in offer.targets], guidance=offer.defaults)
    with CaptureQueriesContext(connection) as queries:
        planned = plan(project, request, reader)
    assert len(planned) == 2
    assert len(queries) == 1
