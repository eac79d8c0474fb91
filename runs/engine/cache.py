"""Reuse earlier passes: a trial whose every input equals that of one that passed isn't run again.

Only on request (`--use-cache`), and only for single trials: repeats have to be independent. Failures are never reused, because a
second try may pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from django.db.models import F
from django.utils import timezone

from runs.models import Run, TranscriptRecord, Trial
from runs.models.run_options import RunOptions
from runs.models.trial import TrialState
from runs.results.search.search_index import index_trials
from scenarios.models import ScenarioVersion

# Names for people, and the suite's version, which other scenarios change too.
_NOT_INPUTS = ("names", "staleness", "suite_version", "suite_sha256", "fixture", "rubric")
_OPTIONS = ("timeout_seconds", "judge", "judge_model", "threshold", "seed", "snapshot", "registry")
_REUSED = ("outcome", "completed", "timed_out", "exit_code", "composite", "seconds", "answer", "scores")


def cache_key(fingerprint: Mapping[str, Any], options: RunOptions) -> str:
    """Return a hash of what a run's trials depend on beside their scenarios."""
    inputs = {name: value for name, value in fingerprint.items() if name not in _NOT_INPUTS}
    requested = options.model_dump(mode="json", include=set(_OPTIONS))
    return hashlib.sha256(msgspec.json.encode([inputs, requested], order="sorted")).hexdigest()


def reuse_passes(run: Run) -> int:
    """Finish the run's queued trials that passed before with the same inputs; return their number.

    Scenarios with `cost.cache: false` always run. Call it in the transaction in which the run's key is stored,
    before its trials start.
    """
    queued = list(Trial.objects.filter(run=run, state=TrialState.QUEUED))
    versions = {each.scenario_version_id for each in queued}
    fresh = ScenarioVersion.objects.filter(pk__in=versions, content__cost__cache=False)
    passes: dict[int, Trial] = {}
    earlier = Trial.objects.filter(
        run__project=run.project_id,
        run__cache_key=run.cache_key,
        scenario_version__in=versions - set(fresh.values_list("pk", flat=True)),
        state=TrialState.FINISHED,
        outcome="pass",
    )
    for trial in earlier.exclude(run=run).order_by("pk"):
        passes[trial.scenario_version_id] = trial
    reused = [trial for trial in queued if trial.scenario_version_id in passes]
    for trial in reused:
        _copy(passes[trial.scenario_version_id], trial)
    index_trials([trial.pk for trial in reused])
    Run.objects.filter(pk=run.pk).update(open=F("open") - len(reused), passed=F("passed") + len(reused))
    return len(reused)


def _copy(earlier: Trial, trial: Trial) -> None:
    """Give a queued trial the result of an earlier one; it costs nothing."""
    for name in _REUSED:
        setattr(trial, name, getattr(earlier, name))
    trial.detail = {**earlier.detail, "cached_from": earlier.detail.get("cached_from", earlier.pk)}
    trial.state, trial.started, trial.finished = TrialState.FINISHED, timezone.now(), timezone.now()
    trial.save()
    for record in TranscriptRecord.objects.filter(trial=earlier):
        record.trial = trial
        record.save(force_insert=True)
    for parts in (earlier.commands, earlier.judgings, earlier.artifacts):
        for part in parts.all():
            part.pk, part.trial = None, trial
            part.save(force_insert=True)
