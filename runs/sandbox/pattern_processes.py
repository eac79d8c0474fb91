"""Run regular expressions in helper processes that are killed at their time limit."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec import msgpack

from evaluators.patterns import Engine, PatternAnswer
from runs.sandbox.helper_processes import HelperEnded, HelperProcesses, HelpersBusy

HELPER = Path(__file__).with_name("pattern_helper.py")
PATIENCE = 5.0
"""Seconds to wait for a free process, and for its answer: several times its processor time, because the machine may be busy."""

_Decoded = tuple[tuple[int, int, int, int] | None, float, str, str]
_decoder = msgpack.Decoder(_Decoded)


class PatternProcesses(HelperProcesses):
    """Helpers that search texts for patterns."""

    def __init__(self) -> None:
        # Processes at once, each of 30 MB.
        super().__init__([sys.executable, "-I", str(HELPER)], most=4, wait=PATIENCE, patience=PATIENCE)

    def __call__(self, engine: Engine, source: str, text: str | None, seconds: float) -> PatternAnswer:
        """Return a helper's answer within these seconds of processor time."""
        try:
            answer = self.ask(msgpack.encode((engine, source, text, seconds)))
            spans, used, invalid, stopped = _decoder.decode(answer)
        except HelpersBusy:
            return PatternAnswer(stopped="all pattern processes are busy. Try again in a minute.")
        except (HelperEnded, msgspec.DecodeError):
            advice = "Write it without nested repetition."
            return PatternAnswer(seconds=seconds, stopped=f"it took longer than {seconds:.2g} s. {advice}")
        return PatternAnswer(spans, used, invalid, stopped)


run_pattern = PatternProcesses()
"""The helpers of this process."""
