"""Whether agent and MCP server share a revision of the protocol. Standard library only, for the proxy."""

from __future__ import annotations

import time
from typing import Any

from runs.engine.mcp.mcp_stdio import (
    META,
    UNKNOWN_METHOD,
    UNSUPPORTED_VERSION,
    describe_refusal,
    read_supported_revisions,
)

GREETINGS = ("initialize", "server/discover")
"""The first request of each era; its result has the server's instructions."""
GRACE_SECONDS = 1.0
"""How long an agent has to try another revision."""
_OPENINGS = (*GREETINGS, "tools/list")
"""What an agent sends first; of the later era, it may skip the greeting."""
_OTHER_REVISION = (UNSUPPORTED_VERSION, -32020)
"""How servers refuse a request of another revision: by its version or its headers."""
_OTHER_ERA = (*_OTHER_REVISION, UNKNOWN_METHOD, -32600, -32602)
"""How they refuse an opening of another era, which they may not even know."""


class Agreement:
    """What has been answered so far. Reached by one thread at a time."""

    def __init__(self) -> None:
        self._is_reached = False
        self._open: dict[int, bool] = {}
        """Whether an unanswered request opens the conversation, by its number."""
        self._asked: list[str] = []
        self._why = ""
        self._refused = 0.0

    def connect(self) -> None:
        """Note a new connection: the agent tries again."""
        self._refused = time.monotonic()

    def ask(self, number: int, message: dict[str, Any]) -> None:
        """Note a request that says which revision the agent speaks; others say nothing."""
        params = message.get("params")
        fields = params if isinstance(params, dict) else {}
        meta = fields.get("_meta")
        revision = meta.get(f"{META}protocolVersion") if isinstance(meta, dict) else None
        method = message.get("method")
        if self._is_reached or not (revision or method in GREETINGS):
            return
        self._open[number] = method in _OPENINGS
        asked = str(revision or fields.get("protocolVersion") or "no revision")
        if asked not in self._asked:
            self._asked.append(asked)

    def answer(self, number: int, message: dict[str, Any]) -> None:
        """Note a response."""
        if (is_opening := self._open.pop(number, None)) is None:
            return
        error = message.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        if code in (_OTHER_ERA if is_opening else _OTHER_REVISION):
            spoken = ", ".join(read_supported_revisions(error))
            self._refuse(f"the server speaks {spoken}" if spoken else describe_refusal(error))
        else:
            # Any other answer is one to a request that the server understood.
            self._is_reached = True

    def end(self, number: int, *, reached: bool) -> None:
        """Note a request that gets no response; `reached` is whether the server could be reached."""
        if self._open.pop(number, None) is not None and reached:
            self._refuse("the server gave no response")

    def _refuse(self, why: str) -> None:
        self._why, self._refused = why, time.monotonic()

    def problem(self, grace: float = GRACE_SECONDS) -> str:
        """Return that they share no revision, in a sentence; empty if they do, or the agent may try another one."""
        if self._is_reached or self._open or not self._why or time.monotonic() < self._refused + grace:
            return ""
        asked = ", ".join(self._asked)
        return (
            f"Agent and MCP server share no protocol revision: the agent asked for {asked}, and {self._why}."
            " Use a version of either that speaks the other's."
        )
