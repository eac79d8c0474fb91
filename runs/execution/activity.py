"""What is stored of an agent's calls while its trial runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evaluators.redaction import mask_values, redact_patterns
from evaluators.transcripts.latest import CallsTold
from runs.models.trial import LONGEST_DOING

LARGEST_EXIT_CODE = 2**31 - 1
"""Beyond what any process ends with, and what a column holds: strangers write what is told."""
_LOOKED_AT = 20 * LONGEST_DOING
"""Characters in which secrets are sought by pattern: well beyond the cut, so that none is stored by half."""


def storable_calls(told: CallsTold, secrets: Iterable[str]) -> CallsTold:
    """Return what is told of an agent's calls as it is stored."""
    if not told.last:
        return told
    code = told.exit_code
    known = code is not None and abs(code) <= LARGEST_EXIT_CODE
    return replace(told, last=storable_call(told.last, secrets), exit_code=code if known else None)


def storable_call(call: str, secrets: Iterable[str]) -> str:
    """Return a call on one line of at most `LONGEST_DOING` characters, without secrets; an ellipsis ends a cut one."""
    line = " ".join(mask_values(call, secrets).split())
    told = redact_patterns(line[:_LOOKED_AT])
    return told if len(told) <= LONGEST_DOING else f"{told[: LONGEST_DOING - 1]}…"
