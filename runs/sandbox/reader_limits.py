"""What a process that reads files of other people may take: the one limit for all formats and everything in them."""

from __future__ import annotations

from scenarios.formats.problems import Problem, ScenarioFileError

SECONDS = 10.0
"""Of processor time, for an upload."""
MEMORY_BYTES = 768 << 20
"""Of its own, beside the program."""
LARGEST_ANSWER = 64 << 20
"""Bytes of what it reads, without the files themselves."""


def too_much(name: str, seconds: float = SECONDS) -> ScenarioFileError:
    """Return the error of an upload that took more."""
    what = f"The upload needs more than {seconds:g} s or {MEMORY_BYTES >> 20} MB to read."
    fix = "Split it, or make its files smaller."
    return ScenarioFileError(
        [Problem(file=name, line=1, where="", what=what, fix=fix, id="bundle/too-much-to-read")]
    )
