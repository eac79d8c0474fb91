"""The web application with the time that each answer took in a header; for benchmarks only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from evalhub.wsgi import application as evalhub


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer as evalhub does, and tell the milliseconds in `Server-Timing`."""
    began = time.perf_counter()

    def timed(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        spent = (time.perf_counter() - began) * 1000
        return start_response(status, [*headers, ("Server-Timing", f"app;dur={spent:.3f}")], *more)

    return evalhub(environ, timed)
