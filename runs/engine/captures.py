"""Capture the snapshot of live values and the tool registry just before a run."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings

from evaluators.model import Json
from evaluators.redaction import mask_values
from evaluators.tool_use.tool import McpServer, Tool
from runs.db.disk import check_room_for_commands
from runs.engine.context import RunContext
from runs.engine.mcp import mcp_stdio
from runs.engine.mcp.mcp_packages import (
    FOLDER,
    cache_variables,
    folder_bytes,
    store_packages,
    stored_packages,
)
from runs.engine.mcp.mcp_server import store_surfaces
from runs.engine.workspace.tool_variables import resolved_headers
from runs.engine.workspace.workspace import LocalWorkspace, fill, trial_folder
from runs.errors import ProviderError, RequestError
from runs.launch.inputs import registry_from
from runs.sandbox.profiles import AGENT, COMMAND, Profile
from scenarios.formats.parsed import Fixture as FixtureFiles
from scenarios.formats.parsed import FixtureFile

if TYPE_CHECKING:  # httpx takes a tenth of a second
    import httpx

COMMAND_SECONDS = 60.0
LISTING_SECONDS = 300.0
"""For a server to come up, with the packages that it fetches."""
FETCH_SECONDS = 30.0
MCP_CLIENT_SCRIPT = ".evalhub-mcp.py"
"""Name of the MCP client program in a command's folder."""
_NO_JSON = (ValueError, RecursionError)
_ONLY_POST = (400, 405, 406)
"""How an MCP server answers a plain GET (MCP, Streamable HTTP)."""


def capture(context: RunContext) -> dict[str, Json]:
    """Return snapshot, registry and the hash of what MCP servers show as run options.

    Raises `RequestError` or `ProviderError` if a source fails.
    """
    options = context.options
    captures: dict[str, Json] = store_surfaces(context, _listings(context))
    if packages := _packages(context):
        captures["packages"] = packages
    if options.snapshot_source:
        captures["snapshot"] = _ask(context, options.snapshot_source, "the snapshot", tools=False)
    if options.registry_source:
        answer = _ask(context, options.registry_source, "the tool registry", tools=True)
        captures["registry"] = registry_from(answer, options.registry_source)
    return captures


def _packages(context: RunContext) -> Json:
    """Return the bytes of the packages that each MCP server fetched, by its name; those without any are left out."""
    servers = {tool.mcp.name: stored_packages(context.run.pk, tool) for tool, _ in context.tools if tool.mcp}
    sizes = {name: folder_bytes(stored) for name, stored in servers.items()}
    return {name: size for name, size in sizes.items() if size}


def _listings(context: RunContext) -> dict[str, Json]:
    """Return what each MCP server under test lists, by its name."""
    listings: dict[str, Json] = {}
    asked: dict[str, McpServer] = {}
    for tool, files in context.tools:
        server = tool.mcp
        # A proof's run belongs to no project.
        if server is None or not context.run.project_id or asked.get(server.name) == server:
            continue
        if server.name in asked:
            raise RequestError(
                f"The suite has two MCP servers named '{server.name}'. Give them different names in target.mcp."
            )
        asked[server.name] = server
        if server.url:
            what = f"the tools of the MCP server '{server.name}'"
            listings[server.name] = _fetch_listing(context, server, what)
            continue
        listings[server.name] = list_command(context, tool, server, files)
    return listings


def list_command(context: RunContext, tool: Tool, server: McpServer, files: FixtureFiles) -> Json:
    """Return what a server on standard input and output lists, and store the packages that its command fetches.

    Raises `RequestError` or `ProviderError`.
    """
    with trial_folder(settings.WORK_DIR, files) as folder:
        fill(folder.scratch, (_mcp_client_script(),))
        workspace = context.workspace(folder, tool)
        speaker = shlex.quote(workspace.inside(folder.scratch / MCP_CLIENT_SCRIPT))
        command = f"{shlex.quote(sys.executable)} -IS {speaker} {shlex.quote(server.command)}"
        packages = folder.scratch / FOLDER
        variables = cache_variables(workspace.inside(packages), offline=False)
        listing = run_for_json(
            command,
            workspace,
            f"the tools of the MCP server '{server.name}'",
            shown=server.command,
            # The server itself has the limits of agents, and packages may take minutes.
            profile=AGENT,
            seconds=LISTING_SECONDS,
            env={name: value for name, value in variables.items() if name not in tool.env},
        )
        store_packages(packages, stored_packages(context.run.pk, tool))
        return listing


def _ask(context: RunContext, source: str, what: str, *, tools: bool) -> Json:
    if source.startswith(("http://", "https://")):
        # For tools the address may be that of an MCP server.
        return _read_address(context, source, what, partial(_tools if tools else _plain, url=source))
    with trial_folder(settings.WORK_DIR, (_mcp_client_script(),) if tools else ()) as folder:
        command = (
            f"{shlex.quote(sys.executable)} -IS {MCP_CLIENT_SCRIPT} {shlex.quote(source)}"
            if tools
            else source
        )
        return run_for_json(command, context.workspace(folder), what, shown=source)


def _mcp_client_script() -> FixtureFile:
    return FixtureFile(MCP_CLIENT_SCRIPT, Path(mcp_stdio.__file__).read_bytes())


def _fetch_listing(context: RunContext, server: McpServer, what: str) -> Json:
    """Return what an MCP server at an address lists. Raises `RequestError` and `ProviderError`."""
    from runs.engine.mcp.mcp_http import fetch_tools

    headers = resolved_headers(server, context.variables)
    secrets = tuple(headers.values())

    def fetch(http: httpx.Client) -> Json:
        return fetch_tools(http, server.url, headers)

    return _read_address(context, server.url, what, fetch, secrets)


def _read_address(
    context: RunContext,
    url: str,
    what: str,
    read: Callable[[httpx.Client], Json],
    secrets: Sequence[str] = (),
) -> Json:
    import httpx

    from runs.sandbox.outbound_http import Deadline, DeadlineExceeded, make_client

    try:
        with make_client(context.outbound, Deadline(FETCH_SECONDS)) as http:
            return read(http)
    except (httpx.HTTPError, httpx.InvalidURL, DeadlineExceeded, *_NO_JSON, mcp_stdio.NoAnswer) as error:
        reason = mask_values((str(error) or type(error).__name__).rstrip("."), secrets)
        raise RequestError(f"{url}: {what} could not be fetched: {reason}. Check the address.") from error
    except ProviderError as error:
        raise RequestError(f"{url}: {what} could not be fetched: {error}") from error


def _plain(http: httpx.Client, url: str) -> Json:
    answer = http.get(url, headers={"Accept": "application/json"})
    answer.raise_for_status()
    return answer.json()


def _tools(http: httpx.Client, url: str) -> Json:
    """Return a registry by MCP if the address ends in `mcp` or accepts no GET, else its JSON."""
    import httpx

    from runs.engine.mcp.mcp_http import fetch_tools

    if urlsplit(url).path.rstrip("/").endswith("mcp"):
        return fetch_tools(http, url)
    try:
        return _plain(http, url)
    except httpx.HTTPStatusError as error:
        if error.response.status_code not in _ONLY_POST:
            raise
        return fetch_tools(http, url)


def run_for_json(
    command: str,
    workspace: LocalWorkspace,
    what: str,
    *,
    shown: str = "",
    profile: Profile = COMMAND,
    seconds: float = COMMAND_SECONDS,
    env: Mapping[str, str] | None = None,
) -> Json:
    """Return the JSON that a command prints. Raises `RequestError` if it fails or prints something else.

    `shown` is the command in messages, if the actual one wraps it.
    """
    result = workspace.run(command, timeout_seconds=seconds, network=True, profile=profile, env=env)
    if result.exit_code != 0:
        check_room_for_commands()
        output = (result.stderr or result.stdout or result.error).strip()[-300:]
        ended = "timed out" if result.timed_out else f"ended with exit code {result.exit_code}"
        raise RequestError(
            f"The command for {what}, '{shown or command}', {ended}: {output or 'no output'}. Correct it."
        )
    try:
        return json.loads(result.stdout)
    except (ValueError, RecursionError) as error:
        raise RequestError(
            f"The command for {what}, '{shown or command}', printed no JSON: {error}. Correct it."
        ) from error
