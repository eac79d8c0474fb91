"""What is asked just before a run: the snapshot of live values, and the tool registry."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from evaluators.model import Json
from runs.context import RunContext
from runs.errors import RequestError
from runs.providers.base import ProviderError
from runs.sources import registry_from, run_for_json
from runs.trial_folder import trial_folder

FETCH_SECONDS = 30.0
_MCP_REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def capture(context: RunContext) -> dict[str, Json]:
    """Return snapshot and registry as run options, for those sources that the request names.

    Raises `RequestError` or `ProviderError` with what is wrong with a source.
    """
    options = context.options
    found: dict[str, Json] = {}
    if options.snapshot_source:
        found["snapshot"] = _ask(context, options.snapshot_source, "the snapshot", None)
    if options.registry_source:
        answer = _ask(context, options.registry_source, "the tool registry", _MCP_REQUEST)
        found["registry"] = registry_from(answer, options.registry_source)
    return found


def _ask(context: RunContext, source: str, what: str, question: Json) -> Json:
    if source.startswith(("http://", "https://")):
        return _fetch(context, source, what, question)
    with trial_folder(settings.WORK_DIR, ()) as folder:
        return run_for_json(source, context.workspace(folder, {}, None), what)


def _fetch(context: RunContext, url: str, what: str, question: Json) -> Json:
    """Return the JSON at an address: asked with GET, or with POST where there is a question (MCP)."""
    import httpx

    from runs.providers.outbound_http import OutOfTime, Patience, client

    request: dict[str, Any] = (
        {"json": question} if question is not None and url.rstrip("/").endswith("mcp") else {}
    )
    headers = {"Accept": "application/json"}
    try:
        with client(context.outbound, Patience(FETCH_SECONDS)) as http:
            answer = http.request("POST" if request else "GET", url, headers=headers, **request)
            answer.raise_for_status()
            return answer.json()
    except (httpx.HTTPError, OutOfTime, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise RequestError(f"{url}: {what} could not be fetched: {reason}. Check the address.") from error
    except ProviderError as error:
        raise RequestError(f"{url}: {what} could not be fetched: {error}") from error
