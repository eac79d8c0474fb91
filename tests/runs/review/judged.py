"""Judged trials for tests of reviews."""

from __future__ import annotations

from typing import Any

from runs.models import JudgingRecord, Run, Trial
from runs.review.calibrations import JudgeVersion
from tests.builders import make_trial, score

VERSION = JudgeVersion("openai/judge-1", "abc123abc123")


def judging(trial: Trial, *, passed: bool = True, **changes: Any) -> JudgingRecord:
    content = {
        "negatives": [] if passed else ["Ran `export` three times."],
        "positives": ["Used search."] if passed else [],
        "criteria": {"task": 0.9 if passed else 0.2, "clarity": 0.8},
        "confidence": 0.9,
    }
    standard = {
        "name": "judging",
        "score": 0.85 if passed else 0.4,
        "passed": passed,
        "model": VERSION.model,
        "rubric": VERSION.rubric,
        "content": {**content, **changes.pop("content", {})},
    }
    return JudgingRecord.objects.create(trial=trial, **{**standard, **changes})


def disagreed_trial(run: Run) -> Trial:
    """Return a trial of the run whose gates failed and whose judge passed it."""
    trial = run.trial_set.order_by("pk")[0]
    trial.scores = [score("gates", "file_exists", 0.0, False), score("judge", "judge", 0.85, True)]
    trial.save(update_fields=["scores"])
    return trial


def judged_trial(run: Run, key: str = "create", *, passed: bool = True, **changes: Any) -> JudgingRecord:
    """Return the judging of a new trial with the same outcome."""
    return judging(make_trial(run, key, outcome="pass" if passed else "fail"), passed=passed, **changes)
