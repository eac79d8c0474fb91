"""The failed request that Gemini CLI or Qwen Code repeats without a word in its stream, until its time is up."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from evaluators.json_values import int_or_none
from evaluators.transcripts.endings import FailedRequest, is_of_service
from evaluators.transcripts.sessions.sub_agents import MAIN
from evaluators.transcripts.stream import json_or_none, mapping_or_empty, text_or_none

LOG = "log"
"""The artifact with the lines of both outputs in the order of their arrival (`agent_log`)."""
_PRINTED = re.compile(r"\[\+[\d:]+\] \[stdout\] ")
_ATTEMPT = re.compile(
    r"\[\+[\d:]+\] \[stderr\] Attempt \d{1,4} failed(?: with (?:status )?(?P<status>\d{3})\b[^.:]*)?"
    r"(?:: |\. Retrying with backoff\.\.\. ?)(?P<said>.*)"
)
_MESSAGE = re.compile(r'"message"\s*:\s*("(?:[^"\\]|\\.)*")')


def find_repeated_request(parser: str, logs: Mapping[str, bytes]) -> FailedRequest:
    """Return the failed request that nothing of the session follows, from the artifacts of a session that was cut.

    Gemini CLI names it on standard error, Qwen Code in its session file. Without one, `said` is empty. What the service
    calls wrong (400, 413) isn't repeated.
    """
    found = FailedRequest()
    if parser == "gemini_cli":
        found = _in_errors(logs.get(LOG, b"").decode("utf-8", "replace"))
    elif parser == "qwen_code":
        found = _in_session(logs.get(MAIN, b""))
    return found if found.status is None or is_of_service(found.status) else FailedRequest()


def _in_errors(log: str) -> FailedRequest:
    found = FailedRequest()
    for line in log.splitlines():
        if _PRINTED.match(line):
            found = FailedRequest()
        elif attempt := _ATTEMPT.match(line):
            message = _MESSAGE.search(attempt["said"])
            said = json.loads(message[1]) if message else attempt["said"].strip()
            status = int(attempt["status"]) if attempt["status"] else None
            found = FailedRequest(said or "The request failed.", status)
    return found


def _in_session(content: bytes) -> FailedRequest:
    found = FailedRequest()
    for line in content.splitlines():
        value = mapping_or_empty(json_or_none(line))
        event = mapping_or_empty(mapping_or_empty(value.get("systemPayload")).get("uiEvent"))
        kind = text_or_none(event.get("event.name")) or ""
        if kind.endswith(".api_error"):
            said = text_or_none(event.get("error_message")) or "The request failed."
            found = FailedRequest(said, int_or_none(event.get("status_code")))
        elif kind.endswith(".api_response") or value.get("type") in ("assistant", "tool_result"):
            found = FailedRequest()
    return found
