"""Return a configured answer, at once or after a delay: for tests, examples and dry runs."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import ClassVar

from pydantic import Field, model_validator

from evaluators.model import Complete, Completion, CompletionRequest, Json, Usage
from runs.sandbox.sandbox import Containment
from runs.targets.providers.base import Availability, Invocation, Recording
from runs.targets.providers.options import PROGRAM_FIELDS, RETRY_FIELDS, Options, ResolvedTarget

_LOOK_SECONDS = 0.1


class MockOptions(Options):
    """The answer and its delay."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS | PROGRAM_FIELDS | {"base_url"}

    opaque_fields: ClassVar[frozenset[str]] = frozenset(("response", "trace"))
    limits_turns: ClassVar[bool] = True

    response: str = "This is the mock provider's answer. Set `response` in the targets file."
    trace: tuple[dict[str, Json], ...] | None = None
    delay_ms: float = Field(default=0, ge=0)
    delay_min_ms: float | None = Field(default=None, ge=0)
    delay_max_ms: float | None = Field(default=None, ge=0)
    exit_code: int | None = 0
    timed_out: bool = False
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> MockOptions:
        if (self.delay_min_ms or 0) > self.delay_max_ms if self.delay_max_ms is not None else False:
            raise ValueError("delay_min_ms is larger than delay_max_ms")
        return self

    def delay_seconds(self) -> float:
        """Return the next delay: fixed, or random between two bounds."""
        if self.delay_min_ms is None and self.delay_max_ms is None:
            return self.delay_ms / 1000
        low = self.delay_min_ms or 0.0
        high = self.delay_max_ms if self.delay_max_ms is not None else low
        return random.uniform(low, high) / 1000  # noqa: S311  # no secret depends on it


class Mock:
    """Returns the same recording for every trial."""

    works_in_folder = False

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, MockOptions):
            raise TypeError(f"{target.name} isn't a mock target")
        self._options = target.options
        has_trace = target.options.trace is not None
        raw = json.dumps(target.options.trace).encode() if has_trace else target.options.response.encode()
        self._recording = Recording(
            raw=raw,
            parser="trace" if has_trace else "plain_text",
            answer=target.options.response,
            exit_code=target.options.exit_code,
            timed_out=target.options.timed_out,
            usage=_usage(target.options),
            cost_usd=target.options.cost_usd,
        )

    def check(self) -> Availability:
        """Always available."""
        return Availability(True)

    def invoke(self, invocation: Invocation) -> Recording:
        """Return the configured answer after the configured delay."""
        delay = self._options.delay_seconds()
        if not delay:
            return self._recording
        seconds, cancelled = wait(delay, invocation.cancelled)
        return Recording(**{**vars(self._recording), "seconds": seconds, "cancelled": cancelled})


def complete_with_mock(target: ResolvedTarget) -> Complete:
    """Return a model that always gives the target's answer: a judge for tests."""
    if not isinstance(target.options, MockOptions):
        raise TypeError(f"{target.name} isn't a mock target")
    options = target.options

    def complete(request: CompletionRequest) -> Completion:
        began = time.monotonic()
        wait(options.delay_seconds(), lambda: False)
        return Completion(
            text=options.response,
            model=target.name,
            usage=_usage(options),
            cost_usd=options.cost_usd,
            seconds=time.monotonic() - began,
        )

    return complete


def wait(seconds: float, cancelled: Callable[[], bool]) -> tuple[float, bool]:
    """Wait; return for how long, and whether the trial was cancelled."""
    began = time.monotonic()
    while (left := began + seconds - time.monotonic()) > 0:
        if cancelled():
            return time.monotonic() - began, True
        time.sleep(min(left, _LOOK_SECONDS))
    return time.monotonic() - began, False


def _usage(options: MockOptions) -> Usage | None:
    if options.input_tokens is None and options.output_tokens is None:
        return None
    return Usage(options.input_tokens or 0, options.output_tokens or 0)
