"""What a trial leaves in the warehouse: its judging, transcript, commands and workspace."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.model import Event, Transcript
from runs.models import Artifact, CommandRecord, JudgingRecord, TranscriptRecord, Trial
from runs.results.files.artifacts import keep_content


def make_judging(trial: Trial, **changes: Any) -> JudgingRecord:
    content = {
        "criteria": {"efficiency": 0.7},
        "positives": ["Opened help after the failure."],
        "negatives": ["Guessed a flag."],
        "reasoning": "It guessed, then read.",
        "confidence": 0.8,
        "raw_answer": "{}",
        **changes.pop("content", {}),
    }
    standard = {"score": 0.8, "passed": True, "model": "judge-1"}
    return JudgingRecord.objects.create(trial=trial, content=content, **{**standard, **changes})


def make_transcript(trial: Trial, events: Sequence[Event], text: str = "") -> TranscriptRecord:
    transcript = Transcript(events=tuple(events), source="events", text=text)
    data = TranscriptRecord.pack(transcript)
    return TranscriptRecord.objects.create(trial=trial, source="events", data=data, events=len(events))


def make_command(trial: Trial, n: int, line: str, **changes: Any) -> CommandRecord:
    return CommandRecord.objects.create(trial=trial, n=n, line=line, **changes)


def make_workspace(trial: Trial, files: Mapping[str, bytes]) -> Artifact:
    """Keep these files as the workspace that a trial left."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    kept = keep_content("workspace", buffer.getvalue(), "application/gzip")
    return Artifact.objects.create(trial=trial, **vars(kept))
