"""Scripts that report scores after the gates and never decide (`scripts.evaluators` of llm-tool-test)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from evaluators.grading.evaluator import TrialEvidence, clamp_score
from evaluators.grading.gates.base_gate import NOT_RUN, excerpt
from evaluators.json_values import NoJson, cut_deep, decode_json
from evaluators.model import CommandResult, Json, Score, Seconds, StrictModel, Text


class EvaluatorScript(StrictModel):
    """One entry of `scripts.evaluators`."""

    command: Text
    name: Text
    timeout_seconds: Seconds = 60.0
    network: bool = False


class ScriptResult(Struct, frozen=True):
    """The output of a script; None means *not reported*."""

    name: str
    score: float | None = None
    """Between 0 and 1."""
    summary: str | None = None
    metrics: Json = None
    error: str | None = None
    warnings: tuple[str, ...] = ()


def score_scripts(scripts: Sequence[EvaluatorScript], evidence: TrialEvidence) -> tuple[Score, ...]:
    """Return one score for each script; its errors are reported and fail nothing."""
    return tuple(_score(script, evidence) for script in scripts)


def _score(script: EvaluatorScript, evidence: TrialEvidence) -> Score:
    if evidence.workspace is None:
        return Score("scripts", script.name, message=NOT_RUN)
    result = run_script(script, evidence)
    detail = {"summary": result.summary, "metrics": result.metrics, "error": result.error}
    if result.warnings:
        detail["warnings"] = list(result.warnings)
    return Score("scripts", script.name, result.score, None, result.error or result.summary or "", detail)


def run_script(script: EvaluatorScript, evidence: TrialEvidence) -> ScriptResult:
    """Run a script in the evidence's workspace and read its output. Raises `ValueError` without a workspace."""
    if evidence.workspace is None:
        raise ValueError(f"The script '{script.name}' needs a workspace.")
    ended = evidence.workspace.run(
        script.command,
        timeout_seconds=script.timeout_seconds,
        env=evidence.command_env,
        network=script.network,
    )
    if ended.timed_out:
        return ScriptResult(script.name, error=f"Timed out after {script.timeout_seconds:g} s")
    return read_output(script.name, ended)


def read_output(name: str, ended: CommandResult) -> ScriptResult:
    """Read the output of a finished script: a JSON object with score, summary and metrics."""
    if ended.exit_code is None:
        return ScriptResult(name, error=ended.error or "The script did not start.")
    if ended.exit_code != 0:
        return ScriptResult(
            name, error=f"Exit code {ended.exit_code}: {excerpt(ended.stderr.strip())}".rstrip()
        )
    try:
        output = decode_json(ended.stdout)
    except NoJson:
        return ScriptResult(name, summary=excerpt(ended.stdout.strip()), error="Invalid JSON output")
    return _script_result(name, output) if isinstance(output, dict) else ScriptResult(name)


def _script_result(name: str, output: dict[str, Json]) -> ScriptResult:
    score, warnings = _clamp(output.get("score"))
    summary = output.get("summary")
    return ScriptResult(
        name,
        score=score,
        summary=summary if isinstance(summary, str) else None,
        metrics=cut_deep(output.get("metrics")),
        warnings=warnings,
    )


def _clamp(score: Json) -> tuple[float | None, tuple[str, ...]]:
    """Return the score limited to 0 to 1 with warnings; None if it is not a number."""
    if score is None:
        return None, ()
    limited = clamp_score(score)
    if limited is None:
        return None, (f"The score {str(cut_deep(score))[:300]} is not a number and was ignored.",)
    warning = f"The score {str(score)[:300]} is outside 0 to 1; {limited:g} was used."
    return limited, () if limited == score else (warning,)
