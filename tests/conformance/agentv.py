"""Translates the cases of AgentV to the functions that the product itself uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from runs import targets
from runs.providers import ProviderError
from runs.providers.cli import output_name
from runs.providers.command_template import TemplateValues, render
from scenarios.formats.problems import ScenarioFileError


def _target(given: Any) -> Any:
    folder = str(PurePosixPath(given["eval_file_path"]).parent) if given.get("eval_file_path") else ""
    try:
        definition = targets.define(given["definition"])
        target = targets.resolve(definition, given["env"], eval_folder=folder)
    except (ScenarioFileError, ProviderError) as error:
        return {"error": str(error)}
    retry = target.options.retry.as_config() if target.options.retry else None
    return {
        "kind": target.kind,
        "config": target.options.as_config(),
        "providerBatching": target.options.provider_batching,
        "retry": retry,
        "retry_subset": retry,
    }


_OUTPUT_FILE = re.compile(r"'[^']*/agentv-([\w.-]+?)-\d+-\w+\.json'")


def _rendered(given: Any) -> Any:
    definition = targets.define({"name": given["target_name"], "provider": "cli", **given["config"]})
    options = targets.resolve(definition, {}).options.as_config()
    request = given["request"]
    values = TemplateValues(
        prompt=request["question"],
        guidelines=request.get("guidelines") or "",
        eval_id=request.get("evalCaseId") or "",
        attempt=request.get("attempt") or 0,
        files=tuple(request.get("inputFiles") or ()),
        output_file=f"/tmp/{output_name(request.get('evalCaseId') or '')}",
    )
    command = render(options["commandTemplate"], values, options["filesFormat"])
    # The name holds the time and chance: it is put in the form in which the cases write it.
    return {"command": _OUTPUT_FILE.sub(r"'<TMPDIR>/agentv-\1-<ms>-<rand>.json'", command)}


AREAS: dict[str, Callable[[Any], Any]] = {
    "agentv.targets_resolution": _target,
    "agentv.retry_config": _target,
    "agentv.cli_provider": _rendered,
}

PENDING = frozenset(
    {
        "agentv.expected_messages",
        "agentv.guideline_match",
        "agentv.llm_judge",
        "agentv.retry_policy",
        "agentv.score_aggregation",
        "agentv.tool_trajectory",
        "agentv.trace_summary",
    }
)
