"""Events of a transcript, for tests with and without Django."""

from __future__ import annotations

from evaluators.model import Event


def shell(command: str, output: str = "", exit_code: int = 0, number: int = 0) -> list[Event]:
    """Return a command's call and result."""
    call = Event("tool_call", id=f"c{number}", name="bash", command=command)
    return [call, Event("tool_result", id=f"c{number}", output=output, exit_code=exit_code, seconds=0.2)]
