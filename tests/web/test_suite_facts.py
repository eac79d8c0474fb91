"""The line of facts in the head of a suite's page."""

from __future__ import annotations

from runs.models import Baseline
from scenarios.models import Fixture, Rubric, ScenarioVersion
from tests.builders import make_run, make_suite, make_target

PATTERN = r"<i>taskmgr\s+(\S+)"
JUDGE = {"rubric": {"name": "capture", "criteria": [{"id": "a", "weight": 1.0}]}, "pass_threshold": 0.5}


def head(client):
    text = client.get("/p/tools/suites/basics/").content.decode()
    return text[text.index('<dl class="facts">') : text.index("</header>", text.index('<dl class="facts">'))]


def make_judged(project, **judge):
    criteria = {"tool": {"binary": "taskmgr", "command_pattern": PATTERN}, "judge": {**JUDGE, **judge}}
    version = make_suite(project, name="Basics", criteria=criteria, fixture="workspace")
    fixture = Fixture.objects.create(project=project, sha256="70b2d9e1" * 8, archive=b"")
    rubric = Rubric.objects.create(project=project, sha256="0badcafe" * 8, name="capture", content={})
    ScenarioVersion.objects.update(fixture=fixture, rubric=rubric)
    return version


def test_a_suite_says_once_what_its_scenarios_share(signed_in, project):
    make_judged(project)
    text = head(signed_in())
    assert '<dt>Fixture</dt><dd>workspace <code class="muted">70b2d9e1</code></dd>' in text
    assert '<dt>Rubric</dt><dd>capture <code class="muted">0badcafe</code></dd>' in text
    assert r"<dt>Tool pattern</dt><dd><code>&lt;i&gt;taskmgr\s+(\S+)</code></dd>" in text
    assert "<dt>Tool</dt>" not in text


def test_a_rubric_that_no_judge_is_asked_by_is_not_told(signed_in, project):
    make_judged(project, enabled=False)
    assert "<dt>Rubric</dt>" not in head(signed_in())


def test_what_scenarios_do_not_have_is_left_out(signed_in, project):
    make_suite(project, name="Basics")
    text = head(signed_in())
    assert all(f"<dt>{name}</dt>" not in text for name in ("Fixture", "Baseline", "Rubric", "Tool pattern"))


def test_several_values_are_counted(signed_in, project):
    version = make_judged(project)
    other = version.scenario_versions.last()
    other.fixture = Fixture.objects.create(project=project, sha256="f" * 64, archive=b"")
    other.save()
    assert "and 1 more</dd>" in head(signed_in())


def test_a_suite_leads_to_its_baselines(signed_in, project):
    version = make_suite(project, name="Basics")
    for name in ("first", "second"):
        target = make_target(project, name)
        run = make_run(version, target=target)
        Baseline.objects.create(suite=version.suite, target=target, run=run)
    run = Baseline.objects.get(target__name="first").run_id
    text = head(signed_in())
    assert f'/runs/{run}/">run {run}</a> and <a href="#baselines">1 more</a>' in text
