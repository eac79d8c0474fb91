"""Guidance over REST: compared and renamed."""

from __future__ import annotations

import json

import pytest

from runs.models import Launch, Run
from scenarios.bundles import Bundle
from scenarios.imports import import_files
from scenarios.models import Upload
from scenarios.storing import guidance_files, guidance_hash
from tests.builders import close, make_guidance, make_run, make_suite, make_target, make_trial


@pytest.fixture
def pair(project):
    version = make_suite(project, name="Basics")
    guidance = [make_guidance(version.suite, name) for name in ("poor", "good")]
    for each, outcome in zip(guidance, ("fail", "pass"), strict=True):
        run = make_run(version, guidance=each)
        for _ in range(5):
            make_trial(run, "create", outcome=outcome)
        close(run)
    return guidance


def test_two_versions_are_compared(api, pair):
    document = api().get(f"/guidance/{pair[0].pk}/against/{pair[1].pk}").json()
    assert (document["verdict"], document["interleaved"]) == ("improved", False)
    assert document["setting"] == {"target": "local", "model": "", "tool_version": ""}
    assert document["scenarios"][0] | {"verdict": ""} == {
        "scenario": "create",
        "before": 0.0,
        "after": 1.0,
        "verdict": "",
    }


def test_a_setting_without_runs_has_no_measures(api, pair):
    document = api().get(f"/guidance/{pair[0].pk}/against/{pair[1].pk}?target=other").json()
    assert (document["verdict"], document["measures"]) == (None, [])


def test_one_version_is_not_compared_with_itself(api, pair):
    refused = api().get(f"/guidance/{pair[0].pk}/against/{pair[0].pk}")
    assert (refused.status_code, refused.json()["id"]) == (422, "guidance/compare")


def test_a_stale_name_is_refused(api, pair):
    address = f"/guidance/{pair[0].pk}"
    assert api("author").patch(address, {"name": "first", "was": "poor"}).json()["name"] == "first"
    refused = api("author").patch(address, {"name": "second", "was": "poor"})
    assert (refused.status_code, refused.json()["id"]) == (422, "guidance/name")


def test_the_lift_of_a_skill_is_part_of_its_comparison_with_no_skill(api, project):
    version = make_suite(project, name="Basics")
    arms = [make_guidance(version.suite, name) for name in ("no skill", "skill")]
    arms[1].files = [{"path": ".agents/skills/tool/SKILL.md", "content": "Run tool."}]
    arms[1].save()
    for guidance, held in zip(arms, (0.0, 1.0), strict=True):
        run = make_run(version, guidance=guidance)
        for _ in range(5):
            scores = [{"layer": "judge", "name": "criterion.it_ran", "value": held}]
            make_trial(run, "create", outcome="pass" if held else "fail", scores=scores)
        close(run)
    lift = api().get(f"/guidance/{arms[0].pk}/against/{arms[1].pk}").json()["lift"]
    assert (lift["verdict"], lift["setting"]["target"]) == ("improved", "local")
    assert lift["sentence"].startswith("On local, the skill adds 100 points of pass rate")
    assert (lift["previous"], lift["benchmark"]) == (None, None)
    assert lift["statements"] == [
        {
            "scenario": "create",
            "name": "judge/criterion.it_ran",
            "text": "It ran",
            "kind": "only_with",
            "without": 0.0,
            "with_skill": 1.0,
        }
    ]
    back = api().get(f"/guidance/{arms[1].pk}/against/{arms[0].pk}").json()
    assert back["lift"] is None


def test_the_lift_says_what_changed_since_the_previous_version(api, project):
    version = make_suite(project, name="Basics")
    arms = [make_guidance(version.suite, name) for name in ("no skill", "skill", "older")]
    launch = Launch.objects.create(project=project, trigger="api")
    runs = []
    for guidance, text in zip(arms, ("", "Run tool.", "Tool."), strict=True):
        guidance.files = [{"path": ".agents/skills/tool/SKILL.md", "content": text}] if text else []
        guidance.save()
        arm = ("reference", "new", "previous")[len(runs)]
        reference = runs[0] if runs else None
        beside = {"launch": launch, "arm": arm, "reference": reference, "options": {"lift": True}}
        runs.append(make_run(version, guidance=guidance, **beside))
        for _ in range(5):
            make_trial(runs[-1], "create", outcome="fail" if guidance == arms[0] else "pass")
        close(runs[-1])
    lift = api().get(f"/guidance/{arms[0].pk}/against/{arms[1].pk}").json()["lift"]
    assert lift["verdict"] == "improved"
    assert lift["previous"] | {"sentence": ""} == {
        "guidance": arms[2].pk,
        "name": "older",
        "runs": [runs[2].pk],
        "verdict": "too_little",
        "sentence": "",
    }
    assert lift["previous"]["sentence"].startswith(
        "Against the previous version, older: too little data, pass rate ±0"
    )


def test_a_lift_is_started_with_the_previous_version_that_is_asked_for(api, project):
    make_target(project)
    version = make_suite(project, name="Basics")
    older, skill = (make_guidance(version.suite, name) for name in ("older", "skill"))
    for guidance in (older, skill):
        guidance.files = [{"path": ".agents/skills/tool/SKILL.md", "content": guidance.name}]
        guidance.sha256 = guidance_hash(guidance_files(guidance))
        guidance.save()
    Upload.objects.create(suite=version.suite, suite_version=version, guidance=skill)
    runs = []
    for previous in ({}, {"previous": "none"}, {"previous": "older"}):
        body = {"suites": ["basics"], "targets": ["local"], "lift": True, **previous}
        keys = api("runner").post("/runs", body).json()["runs"]
        runs.append([str(each.guidance) for each in Run.objects.filter(pk__in=keys).order_by("pk")])
    assert runs == [["no skill", "skill", "older"], ["no skill", "skill"], ["no skill", "skill", "older"]]
    refused = api("runner").post("/runs", {"suites": ["basics"], "lift": True, "previous": "/etc"})
    assert (refused.status_code, refused.json()["id"]) == (422, "request/invalid")
    assert "'/etc' isn't a guidance version of Basics. It has: " in refused.json()["detail"]


def test_a_skills_own_benchmark_is_said_beside_the_means_and_no_agent_gets_it(api, project):
    make_target(project)
    said = json.dumps(
        {
            "runs": [
                {"configuration": arm, "result": {"passed": passed, "total": 4}, "expectations": []}
                for arm, passed in (("with_skill", 4), ("with_skill", 3), ("without_skill", 1))
            ]
        }
    )
    files = {
        "SKILL.md": b"---\nname: tool\ndescription: Use it.\n---\nRun tool.",
        "benchmark.json": said.encode(),
        "evals/evals.json": b'{"skill_name": "tool", "evals": [{"id": "a", "prompt": "Go.", "expected_output": "Gone."}]}',
    }
    (imported,) = import_files(Bundle("tool", files), project=project, by=None)
    assert [each["path"] for each in imported.guidance.files] == [".agents/skills/tool/SKILL.md"]
    body = {"suites": ["tool"], "targets": ["local"], "lift": True}
    without, skill = Run.objects.filter(pk__in=api("runner").post("/runs", body).json()["runs"]).order_by(
        "pk"
    )
    for asked, share in ((without, 0.5), (skill, 1.0)):
        run = make_run(imported.version, guidance=asked.guidance, options=asked.options)
        for _ in range(3):
            make_trial(run, "a", outcome="pass", scores=[{"layer": "judge", "name": "judge", "value": share}])
        close(run)
    lift = api().get(f"/guidance/{without.guidance_id}/against/{skill.guidance_id}").json()["lift"]
    assert lift["benchmark"] == {
        "sentence": "Mean share of statements by skill-creator's benchmark.json: 88 % with the skill (here 100 %),"
        " 25 % without it (here 50 %).",
        "means": [
            {"configuration": "with_skill", "said": 0.875, "here": 1.0},
            {"configuration": "without_skill", "said": 0.25, "here": 0.5},
        ],
    }
