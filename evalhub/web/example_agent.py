"""The example agent behind HTTP: a separate process; targets get its address from variables."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

from django.conf import settings

SCRIPT = Path(settings.BASE_DIR) / "scenarios" / "examples" / "agents" / "city_agent.py"
VARIABLES = ("EVALHUB_EXAMPLE_AGENT_V1", "EVALHUB_EXAMPLE_AGENT_V2")
"""Variables with the addresses of its two versions."""


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def agent_command(port: int) -> list[str]:
    """Return the command line of the agent behind HTTP."""
    return [sys.executable, str(SCRIPT), str(port)]


def agent_addresses(port: int) -> dict[str, str]:
    """Return the variables with the agent's addresses."""
    return {name: f"http://127.0.0.1:{port}/v{number}/chat" for number, name in enumerate(VARIABLES, start=1)}


def wait_until_open(port: int, seconds: float = 10.0) -> None:
    """Wait until a process listens on a port of the loopback interface. Raises `TimeoutError`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError(f"The example agent did not listen on port {port} within {seconds:g} s.")
