"""Write a run as llm-tool-test's results folder: `results.jsonl` and a folder for each trial, as zip.

Texts are redacted, also those of the workspace in `fixture/`; its other files are left out, and `run.json` names them.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from evalhub.lib.limits import LONGEST_TEXT
from evalhub.lib.timestamps import format_timestamp
from evaluators.model import Event, Transcript
from evaluators.redaction import redact_json, redact_patterns
from runs.exchange.results_files.llm_tool_test import EVENTS, FIXTURE, METRICS, RAW, RESULTS, RUN
from runs.models import Artifact, Run, Trial
from runs.models.trial import TrialState
from runs.results.files.artifacts import StoredFileUnavailable, open_stored
from runs.results.files.workspace_archive import UNREADABLE, is_gits_own, kept_files, text_of_file
from scenarios.archives import MAX_MEMBERS, check_path
from scenarios.formats.parsed import ScenarioFileError

MOST_BYTES = 20_000_000
"""Bytes of text in one archive."""
MOST_NAMED = 20
"""Files named as left out of one trial."""


class WorkspaceTexts:
    """Reads workspaces until the archive is full: besides `others` files it takes what an import accepts."""

    def __init__(self, others: int) -> None:
        self._files = MAX_MEMBERS - others
        self._bytes = MOST_BYTES

    def read(self, artifact: Artifact | None, folder: str) -> tuple[dict[str, str], list[str]]:
        """Return texts by path below `folder`, and why others are left out, a sentence or path each.

        Binary files can't be redacted, so they are left out, like files over 200 kB and Git's own.
        """
        texts, left_out = dict[str, str](), list[str]()
        if artifact is None:
            return texts, left_out
        try:
            with open_stored(artifact.sha256) as archive:
                for file, content in kept_files(archive, lambda file: file.size <= LONGEST_TEXT):
                    path = f"{folder}/{file.path}"
                    text = text_of_file(content) if file.size <= LONGEST_TEXT else None
                    if is_gits_own(file.path):
                        continue
                    if text is not None and _may_hold(path) and self._takes(file.size):
                        texts[path] = redact_patterns(text)
                    elif len(left_out) < MOST_NAMED:
                        left_out.append(redact_patterns(file.path))
        except StoredFileUnavailable as error:
            left_out.append(str(error))
        except UNREADABLE:
            left_out.append("The stored workspace is damaged. Restore it from a backup.")
        return texts, left_out

    def _takes(self, size: int) -> bool:
        fits = self._files > 0 and self._bytes >= size
        if fits:
            self._files -= 1
            self._bytes -= size
        return fits


def _may_hold(path: str) -> bool:
    """Return whether an archive with this path is accepted."""
    try:
        check_path("", path)
    except ScenarioFileError:
        return False
    return True


_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry, so that the same run gives the same archive."""
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_EFFICIENCY = {
    "total_commands": "total_commands",
    "unique_commands": "unique_commands",
    "error_count": "error_count",
    "retry_count": "retry_count",
    "help_invocations": "help_seeking",
    "first_try_success_rate": "first_try_success_rate",
    "iteration_ratio": "iteration_ratio",
    "completed": "completed",
}
"""Names of llm-tool-test by those of `Interaction`."""
_TURN = "---/NEW TURN/---"
FILES_OF_A_TRIAL = 6
"""Files beside its workspace."""


def results_archive(run: Run) -> bytes:
    """Return the archive of a run's finished trials."""
    buffer, records, names = io.BytesIO(), list[str](), set[str]()
    trials = run.trial_set.filter(round=0, state=TrialState.FINISHED).order_by("position", "pk")
    workspaces = {
        artifact.trial_id: artifact
        for artifact in Artifact.objects.filter(trial__in=trials.values("pk"), name="workspace")
    }
    reader = WorkspaceTexts(others=1 + FILES_OF_A_TRIAL * trials.count())
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for trial in trials.select_related("scenario", "scenario_version", "transcript").iterator(100):
            folder = _folder(run, trial, names)
            record = _record(run, trial, folder)
            records.append(json.dumps(record, ensure_ascii=False))
            workspace, left_out = reader.read(workspaces.get(trial.pk), f"{folder}/{FIXTURE}")
            for name, text in _files(run, trial, record, left_out).items():
                _add(archive, f"{folder}/{name}", text)
            for path, text in workspace.items():
                _add(archive, path, text)
        _add(archive, RESULTS, "".join(f"{line}\n" for line in records))
    return buffer.getvalue()


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(entry, text.encode("utf-8", "replace"))


def _folder(run: Run, trial: Trial, names: set[str]) -> str:
    """Return the name of a trial's folder; trials of the same second and scenario are numbered."""
    began = trial.started or run.started or run.created
    parts = (f"{began:%Y%m%d-%H%M%S}", run.target.name, run.model or "default", trial.scenario.key)
    name = base = "-".join(_UNSAFE.sub("_", part) for part in parts)[:200]
    number = 1
    while name in names:
        number += 1
        name = f"{base}-{number}"
    names.add(name)
    return name


def _record(run: Run, trial: Trial, folder: str) -> dict[str, Any]:
    """Return a trial's line of results.jsonl."""
    metrics = _metrics(trial)
    return {
        "id": f"run-{run.pk}-{trial.pk}",
        "run": str(run.pk),
        "suite": run.suite.name,
        "scenario_id": trial.scenario.key,
        "scenario_hash": trial.scenario_version.sha256,
        "tool": run.target.name,
        "model": run.model or "default",
        "timestamp": format_timestamp(trial.started or run.started or run.created),
        "duration_secs": trial.seconds,
        "cost_usd": trial.cost_usd,
        "gates_passed": metrics["gates_passed"] == metrics["gates_total"],
        "metrics": metrics,
        "judge_score": metrics["judge_score"],
        "outcome": _outcome(trial, metrics),
        "transcript_path": f"{folder}/artifacts",
    }


def _outcome(trial: Trial, metrics: dict[str, Any]) -> str:
    if trial.outcome == "error":
        return f"Error: {redact_patterns(trial.error)}"
    if trial.outcome == "pass":
        return "Pass"
    return f"Fail: {metrics['gates_passed']}/{metrics['gates_total']} gates passed"


def _metrics(trial: Trial) -> dict[str, Any]:
    interaction = trial.detail.get("interaction") or {}
    judge: dict[str, Any] = next(
        (score for score in trial.scores if score["layer"] == score["name"] == "judge"), {}
    )
    gates = [score for score in trial.scores if score["layer"] == "gates" and score.get("passed") is not None]
    metrics: dict[str, Any] = redact_json(
        {
            "gates_passed": sum(score["passed"] for score in gates),
            "gates_total": len(gates),
            "details": [
                {
                    "gate_type": "".join(word.capitalize() for word in score["name"].split("_")),
                    "passed": score["passed"],
                    "message": score.get("message", ""),
                }
                for score in gates
            ],
            "efficiency": {name: interaction.get(own) for name, own in _EFFICIENCY.items()},
            "composite_score": trial.composite,
            "judge_score": judge.get("value"),
            "judge_passed": judge.get("passed"),
            "evaluator_results": [
                {
                    "name": score["name"],
                    "score": score.get("value"),
                    "summary": score.get("message", ""),
                    "metrics": (score.get("detail") or {}).get("metrics") or {},
                    "error": score.get("error") or None,
                }
                for score in trial.scores
                if score["layer"] == "scripts"
            ],
        }
    )
    return metrics


def _files(run: Run, trial: Trial, record: dict[str, Any], left_out: list[str]) -> dict[str, str]:
    """Return the files of a trial's folder by path."""
    stored = getattr(trial, "transcript", None)
    transcript = stored.unpack() if stored else Transcript()
    tool = trial.scenario_version.content.get("criteria", {}).get("tool") or {}
    named = ("suite", "run", "scenario_id", "scenario_hash", "tool", "model", "timestamp", "duration_secs")
    about = {
        **{name: record[name] for name in named},
        "cost_estimate_usd": trial.cost_usd,
        "token_usage": None
        if trial.tokens_in is None
        else {
            "input": trial.tokens_in,
            "output": trial.tokens_out or 0,
            **(trial.detail.get("usage") or {}),
        },
        "target_tool_version": run.tool_version or None,
        "target": {name: tool[name] for name in ("binary", "command_pattern") if tool.get(name)},
        "exit_code": trial.exit_code,
        "timed_out": trial.timed_out,
        "outcome": record["outcome"],
        "answer": trial.answer,
        "fixture_left_out": left_out,
    }
    texts = [event.text for event in transcript.events if event.type == "message" and event.text]
    return {
        f"artifacts/{RUN}": _json(redact_json(about)),
        f"artifacts/{RAW}": redact_patterns(transcript.text or trial.answer),
        f"artifacts/{EVENTS}": "".join(_event_lines(transcript)),
        "artifacts/transcript.human.txt": redact_patterns(
            "".join(f"{_TURN}\n{text}\n---\n" for text in texts)
        ),
        METRICS: _json(record["metrics"]),
        "evaluation.md": _evaluation(record),
    }


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _event_lines(transcript: Transcript) -> Iterator[str]:
    for event in transcript.events:
        if event.type != "raw":
            yield json.dumps(redact_json(_line(event)), ensure_ascii=False) + "\n"


_SAME = ("command", "input", "output", "text", "role", "exit_code", "success")


def _line(event: Event) -> dict[str, Any]:
    """Return an event as the reader of structured events reads it."""
    line = {
        "event": event.type,
        "ts": event.timestamp,
        "id": event.id,
        "tool": event.name,
        **{name: getattr(event, name) for name in _SAME},
        "usage": None if event.usage is None else {"input": event.usage.input, "output": event.usage.output},
        "duration_ms": None if event.seconds is None else event.seconds * 1000,
    }
    return {name: value for name, value in line.items() if value is not None}


def _evaluation(record: dict[str, Any]) -> str:
    metrics = record["metrics"]
    rows = [
        f"- {'✓' if gate['passed'] else '✗'} {gate['gate_type']}: {gate['message']}"
        for gate in metrics["details"]
    ]
    judge = metrics["judge_score"]
    return "\n".join(
        [
            f"# {record['scenario_id']}",
            "",
            f"Outcome: {record['outcome']}",
            "",
            f"## Gates ({metrics['gates_passed']}/{metrics['gates_total']})",
            "",
            *rows,
            *(("", f"Judge score: {judge:.2f}") if judge is not None else ()),
            "",
        ]
    )
