"""Prepares the calls of a running agent for storage: one line, cut, without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evaluators.redaction import mask_values, redact_patterns
from evaluators.transcripts.latest import LatestCalls
from runs.models.trial import LONGEST_ACTIVITY

LARGEST_EXIT_CODE = 2**31 - 1
"""The largest value of the column; agents report exit codes, so any number may come."""
_REDACTED_CHARACTERS = 20 * LONGEST_ACTIVITY
"""Characters that are searched for secrets: well beyond the cut, so that no half of one is stored."""


def storable_calls(calls: LatestCalls, secrets: Iterable[str]) -> LatestCalls:
    """Return an agent's calls in the form that is stored."""
    if not calls.last:
        return calls
    code = calls.exit_code
    known = code is not None and abs(code) <= LARGEST_EXIT_CODE
    return replace(calls, last=storable_call(calls.last, secrets), exit_code=code if known else None)


def storable_call(call: str, secrets: Iterable[str]) -> str:
    """Return a call on one line of at most `LONGEST_ACTIVITY` characters, secrets redacted, with an ellipsis if cut."""
    line = " ".join(mask_values(call, secrets).split())
    redacted = redact_patterns(line[:_REDACTED_CHARACTERS])
    return redacted if len(redacted) <= LONGEST_ACTIVITY else f"{redacted[: LONGEST_ACTIVITY - 1]}…"
