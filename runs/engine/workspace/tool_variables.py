"""The variables that evalhub sets for a trial's commands, and those that it takes from the worker."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.tool_use.tool import McpServer
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder
from runs.errors import ProviderError
from scenarios.tool_variables import OF_TRIALS, named_variables, resolve_headers


def trial_variables(
    workspace: LocalWorkspace, folder: TrialFolder, *, scenario: str = "", agent: str = "", model: str = ""
) -> dict[str, str]:
    """Return the variables of scripts, with paths as inside the sandbox (llm-tool-test, Scripts)."""
    inside = workspace.inside
    values = (
        inside(folder.workspace),
        inside(folder.scratch),
        scenario,
        agent,
        model,
        inside(folder.transcript),
        inside(folder.events),
    )
    return dict(zip(OF_TRIALS, values, strict=True))


def refuse_missing_variables(env: Mapping[str, str], variables: Mapping[str, str]) -> None:
    """Raise `ProviderError` (kind `configuration`) if `target.env` names a variable that the project doesn't have."""
    for name, variable in named_variables(env):
        if variable not in variables:
            raise ProviderError(
                f"target.env needs the variable {variable} for {name}, and it is not set, or this project may "
                "not use it. Set it on the worker and allow it in EVALHUB_ENV_ALLOW.",
                kind="configuration",
            )


def resolved_headers(server: McpServer, variables: Mapping[str, str]) -> dict[str, str]:
    """Return an MCP server's headers with their values.

    Raises `ProviderError` (kind `configuration`) for a variable that the project doesn't have, or a value that isn't a header's.
    """
    try:
        headers = resolve_headers(server.headers, variables)
    except KeyError as error:
        raise ProviderError(
            f"target.mcp.headers needs the variable {error.args[0]}, and it is not set, or this project may not use "
            "it. Set it on the worker and allow it in EVALHUB_ENV_ALLOW.",
            kind="configuration",
        ) from error
    for name, value in headers.items():
        if not value.isprintable() or not value.isascii():
            raise ProviderError(
                f"The header {name} of target.mcp has characters that no header can have. Fix its variable's value.",
                kind="configuration",
            )
    return headers
