"""The inputs that a run's results depend on: with equal fingerprints, runs differ only by chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings

from evalhub.lib.limits import LONGEST_NAME
from evalhub.lib.numbers import counted
from evaluators.statistics.staleness import check_staleness
from runs.engine.context import RunContext
from runs.engine.judges import judge_names, judge_target
from runs.sandbox.worker_settings import containment
from runs.targets.definitions import definition_hash
from scenarios.hashing import joint_hash


def fingerprint(context: RunContext, tool_version: str, provider_version: str) -> dict[str, Any]:
    """Return the run's fingerprint; hashes are SHA-256, empty where there is nothing to hash."""
    run = context.run
    definition = (run.target_version or run.target).definition
    rows = list(
        run.suite_version.entries.values_list(
            "scenario_version__fixture__sha256",
            "scenario_version__rubric__sha256",
            "scenario_version__judge_hash",
            "scenario_version__content__criteria__threshold",
            "scenario_version__content__fixture",
            "scenario_version__rubric__name",
        )
    )
    return {
        "suite_version": run.suite_version.number,
        "suite_sha256": run.suite_version.sha256,
        "fixture": joint_hash(row[0] for row in rows),
        "guidance": run.guidance.sha256 if run.guidance else "",
        "rubric": joint_hash(row[1] for row in rows),
        "tool_version": tool_version,
        "tool_files": context.tool_files_hash,
        **({"tool_surface": context.options.surface} if context.options.surface else {}),
        "target": run.target.name,
        "target_sha256": definition_hash(definition),
        "endpoint": str(definition.get("url") or ""),
        "provider": run.target.provider,
        "provider_version": provider_version,
        "model": context.model,
        **({"command_pattern": context.shared_pattern} if context.shared_pattern else {}),
        **_judge(context),
        **_threshold(context.options.threshold, [row[3] for row in rows]),
        "evalhub": settings.VERSION,
        "sandbox": containment().level.value,
        "staleness": staleness(context),
        "names": _names(
            guidance=(file.path for file in context.guidance),
            fixture=(row[4] for row in rows if row[0]),
            rubric=(row[5] for row in rows),
            tool_surface=(
                f"{surface.server}: {counted(len(surface.tools), 'tool')}, about {surface.tokens:,} tokens"
                for surface in context.surfaces.values()
            ),
        ),
    }


def _judge(context: RunContext) -> dict[str, str]:
    """Return the default judge; empty for none. Scenarios' own judges are part of the suite's hash."""
    first, last = judge_names(context.run, context.target, context.options)
    name = (first or last) if context.options.judge else ""
    target = judge_target(context.run, name) if name else None
    return {"judge": name, "judge_sha256": definition_hash(target.definition) if target else ""}


def _threshold(requested: float | None, scenario_thresholds: Sequence[float | None]) -> dict[str, str]:
    """Return the thresholds of the aggregate score (AgentV evaluation, Score Aggregation); empty if 1."""
    thresholds = (
        {1.0 if each is None else each for each in scenario_thresholds} if requested is None else {requested}
    )
    return {"threshold": ", ".join(f"{each:g}" for each in sorted(thresholds))} if thresholds - {1.0} else {}


def staleness(context: RunContext) -> dict[str, Any]:
    """Return whether the suite's metadata matches the run's tool registry; empty without metadata."""
    metadata = context.run.suite_version.config.get("metadata")
    if not metadata:
        return {}
    registry = context.registry
    report = check_staleness(metadata, registry)
    tool = registry.tools.get(str(metadata.get("toolName"))) if registry else None
    return {
        "warnings": list(report.warnings),
        "stale": report.stale,
        "generated_hash": report.generated_hash,
        "description_hash": report.current_hash,
        "registry_size": registry.size if registry else None,
        "tool_version": tool.version if tool else None,
    }


def _names(**used: Iterable[Any]) -> dict[str, str]:
    """Return readable names of the hashed parts, comma-separated; results don't depend on them."""
    by_part = {part: sorted({str(each) for each in names if each}) for part, names in used.items()}
    return {part: ", ".join(names)[:LONGEST_NAME] for part, names in by_part.items() if names}
