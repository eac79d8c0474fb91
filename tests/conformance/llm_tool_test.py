"""Translates the cases of llm-tool-test to the functions that the product itself uses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from evaluators.grading.evaluate import (
    CompositeWeights,
    Criteria,
    compute_composite,
    decide_outcome,
    evaluate,
)
from evaluators.grading.evaluator import TrialEvidence
from evaluators.grading.gates.informing_scripts import EvaluatorScript, run_script
from evaluators.grading.judges.rubric import JudgeCriteria, RubricCriteria, first_object, validated_reply
from evaluators.grading.judges.rubric_judge import reaches_threshold
from evaluators.model import FoundCommand, Score, Transcript
from evaluators.redaction import redact_patterns
from evaluators.tool_use.interaction import Interaction, analyse, compute_metrics
from evaluators.tool_use.tool import Tool
from evaluators.tool_use.tool_commands import number_commands
from evaluators.transcripts import parse
from runs.engine.workspace.workspace import LocalWorkspace, fill, fresh_folder
from runs.sandbox.sandbox import Containment, Policy, detect_machine
from scenarios.formats.llm_tool_test.config_file import read_gates
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.text_files import read_json

ANY_PROGRAM = r"^(?!exit|error|failed)[a-z][\w.-]*\s+(?P<sub>--help|\w\S*)"
"""Matches any lower-case program followed by a word, for transcripts without a known tool."""


def _analysed(given: Any) -> Interaction:
    binary, pattern = given["target_binary"] or "", given["command_pattern"] or ""
    tool = Tool(binary=binary, command_pattern=pattern if binary or pattern else ANY_PROGRAM)
    return analyse(parse("plain_text", given["transcript"].encode()), tool, completed=True)


def _metrics(counts: Interaction) -> dict[str, Any]:
    fields = counts.as_json()
    return {**fields, "command_count": counts.total_commands, "help_invocations": counts.help_seeking}


def _extract(given: Any) -> Any:
    return {
        "commands": [
            {"command": one.subcommand, "exit_code": one.exit_code} for one in _analysed(given).commands
        ]
    }


def _seen(event: Any) -> FoundCommand:
    helping = event["command"] == "help"
    code = event["exit_code"]
    return FoundCommand(
        event.get("line", event["command"]),
        event["command"],
        code,
        failed=not helping and code not in (None, 0),
        help=helping,
    )


def _from_events(given: Any) -> Any:
    evidence = TrialEvidence(Transcript(), exit_code=given["agent_exit_code"], timed_out=given["timed_out"])
    commands = number_commands((_seen(event), None) for event in given["events"])
    return _metrics(compute_metrics(commands, source="events", completed=evidence.completed))


def _gate_scores(given: Any) -> list[Score]:
    verdicts = [n < given["gates_passed"] for n in range(given["gates_total"])]
    return [Score("gates", "script", float(passed), passed) for passed in verdicts]


def _composite(given: Any) -> Any:
    scores = [
        *_gate_scores(given),
        Score("judge", "judge", given["judge_score"]),
        Score("interaction", "first_try_success_rate", given["first_try_success_rate"]),
    ]
    score, _ = compute_composite(CompositeWeights(**(given["weights"] or {})), scores, decide_outcome(()))
    return {"score": score}


def _outcome(given: Any) -> Any:
    scores = _gate_scores(given)
    judge = given["judge"]
    if judge and judge.get("enabled", True):
        passed = reaches_threshold(judge["weighted_score"], judge["pass_threshold"])
        scores.append(Score("judge", "judge", judge["weighted_score"], passed))
    done = evaluate(
        Criteria(), TrialEvidence(Transcript()), [lambda criteria, evidence, so_far: tuple(scores)]
    )
    return {"outcome": done.outcome.capitalize()}


def _weighted(given: Any) -> Any:
    reply = validated_reply(given["response"], RubricCriteria(**given["rubric"]))
    return {
        "reported": reply.weighted_score,
        "recomputed": reply.recomputed,
        "missing": list(reply.missing),
        "mismatch": reply.mismatch,
    }


def _passes(given: Any) -> Any:
    wanted = JudgeCriteria(rubric=RubricCriteria(criteria=()), pass_threshold=given["pass_threshold"])
    return {"passed": reaches_threshold(given["weighted_score"], wanted.pass_threshold)}


@contextmanager
def _workspace(files: dict[str, str]) -> Iterator[LocalWorkspace]:
    """Give a workspace with these files, contained as well as this machine can."""
    with TemporaryDirectory(prefix="evalhub-conformance-") as folder:
        root = Path(folder)
        fixture = [FixtureFile(path, text.encode()) for path, text in files.items()]
        scratch = root / "scratch"
        scratch.mkdir()
        containment = Containment(Policy.PREFER, detect_machine(), os.environ.get("PATH", os.defpath))
        workspace = fresh_folder(root, "workspace-")
        fill(workspace, fixture)
        yield LocalWorkspace(workspace, scratch, containment)


def _gate(given: Any) -> Any:
    document = read_json(json.dumps([given["gate"]]).encode(), "gates.json")
    gates, problems = read_gates(document.value, document, ())
    if not gates:
        return {"passed": False, "message": str(problems[0])}
    with _workspace(given.get("files") or {}) as workspace:
        score = gates[0].check(TrialEvidence(Transcript(), workspace=workspace))
    return {"passed": score.passed, "message": score.message}


def _evaluators(given: Any) -> Any:
    scripts = [
        EvaluatorScript(command=one["command"], name=one["name"], timeout_seconds=one.get("timeout_secs", 60))
        for one in given["evaluators"]
    ]
    with _workspace({}) as workspace:
        evidence = TrialEvidence(Transcript(), workspace=workspace)
        results = [run_script(script, evidence) for script in scripts]
    return {"results": [msgspec.to_builtins(result) for result in results]}


AREAS: dict[str, Callable[[Any], Any]] = {
    "llm_tool_test.analyzer.extract": _extract,
    "llm_tool_test.analyzer.metrics": lambda given: _metrics(_analysed(given)),
    "llm_tool_test.metrics.from_events": _from_events,
    "llm_tool_test.metrics.seed": _from_events,
    "llm_tool_test.redact": lambda given: redact_patterns(given["text"]),
    "llm_tool_test.composite": _composite,
    "llm_tool_test.judge.weighted": _weighted,
    "llm_tool_test.judge.pass": _passes,
    "llm_tool_test.judge.parse": lambda given: (
        first_object(given["text"]) or {"error": "There is no JSON object."}
    ),
    "llm_tool_test.outcome": _outcome,
    "llm_tool_test.gate": _gate,
    "llm_tool_test.evaluators": _evaluators,
}

PENDING: frozenset[str] = frozenset()
