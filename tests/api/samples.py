"""One of everything in a project, and the keys under which the REST interface has it."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evalhub.teams.models import ApiToken, Project
from runs.models import (
    Alert,
    Annotation,
    Artifact,
    Baseline,
    Change,
    Channel,
    Delivery,
    Measure,
    ModelPrice,
    Notification,
    Overrule,
    Reassessment,
    SuiteProof,
    TargetTry,
)
from runs.results.files import artifacts
from tests.builders import close, make_guidance, make_member, make_run, make_suite, make_trial, used
from tests.shell_events import shell
from tests.trial_parts import make_command, make_judging, make_transcript, make_workspace


def make_samples(project: Project, name: str = "Basics") -> dict[str, Any]:
    """Return path parameters of a suite with a run, and of everything that belongs to them."""
    version = make_suite(project, name=name)
    before, run = make_run(version), make_run(version)
    before_trial = make_trial(before)
    trial = make_trial(run, outcome="fail", detail=used({"name": "export", "calls": 4, "errors": 3}))
    make_command(trial, 0, "tool export", subcommand="export", exit_code=1, failed=True)
    make_transcript(trial, shell("tool export", "no", 1), text="$ tool export\nno\n")
    kept = artifacts.keep_content("transcript", b"$ tool export\n")
    Artifact.objects.create(trial=trial, **vars(kept))
    make_workspace(trial, {"out.txt": b"no\n"})
    make_judging(trial)
    close(close(before) and run)
    member = make_member(project, "viewer")
    token, _ = ApiToken.issue(project, member, name="other", role="viewer")
    measure = Measure.objects.get(layer="trial", name="pass")
    Change.objects.create(
        run=run, baseline=before, measure=measure, verdict="regressed", before=1.0, after=0.0
    )
    SuiteProof.objects.create(suite_version=version, by=member)
    channel = Channel.objects.create(
        project=project, name="Team", kind="email", recipients=["team@example.org"], events=["assigned"]
    )
    sent = Notification.objects.create(project=project, event="test", key=f"test:{channel.pk}")
    delivery = Delivery.objects.create(notification=sent, channel=channel, state="failed")
    guidance, other = make_guidance(version.suite), make_guidance(version.suite, "v2")
    overruled = Overrule.objects.create(
        trial=before_trial,
        layer="judge",
        name="judge",
        passed=True,
        original={"layer": "judge", "name": "judge"},
        reason="Fine.",
        by=member,
    )
    again = Reassessment.objects.create(run=run, kind="judge", by=member, finished=timezone.now())
    return {
        "overrule_id": overruled.pk,
        "reassessment_id": again.pk,
        "slug": version.suite.slug,
        "number": version.number,
        "guidance_id": guidance.pk,
        "a": guidance.pk,
        "b": other.pk,
        "name": run.target.name,
        "baseline_id": Baseline.objects.create(suite=version.suite, target=run.target, run=before).pk,
        "run_id": run.pk,
        "annotation_id": Annotation.objects.create(
            project=project, run=run, day=run.created.date(), text="New host"
        ).pk,
        "member_id": member.memberships.get().pk,
        "price_id": ModelPrice.objects.create(
            project=project, model="gpt-5", input_per_million=1.0, output_per_million=2.0
        ).pk,
        "before_id": before.pk,
        "target_id": run.target.pk,
        "launch_id": run.launch_id,
        "trial_id": trial.pk,
        "before_trial_id": before_trial.pk,
        "artifact": kept.name,
        "alert_id": Alert.objects.create(project=project, run=run).pk,
        "token_id": token.pk,
        "channel_id": channel.pk,
        "delivery_id": delivery.pk,
        "try_id": TargetTry.objects.create(
            project=project, by=member, name="local", definition={}, prompt="Go"
        ).pk,
    }
