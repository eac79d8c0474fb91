"""The prompt of an agent that opens files itself: what it must read first, then the question.

AgentV evaluation, VS Code provider and Codex CLI provider: a mandatory block with file:// links.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

_RULE = (
    "Read every one of them before anything else. If one cannot be read, answer only "
    "`ERROR: missing-file <name>` and stop."
)
_QUERY = "[[ ## user_query ## ]]"


def preread_prompt(
    question: str, *, guidelines: Sequence[str] = (), files: Sequence[str] = (), kind: str = "input"
) -> str:
    """Return the document for an agent. Paths are absolute and those that the agent sees; each is named once."""
    parts = [_list_paths("guideline files", guidelines), _list_paths(f"{kind} files", files)]
    listed = [part for part in parts if part]
    rule = [f"{_RULE} Then answer the query below as the guidelines say."] if listed else []
    return "\n\n".join([*listed, *rule, f"{_QUERY}\n\n{question.strip()}"]).strip()


def markdown_link(path: str) -> str:
    """Return a Markdown link to a file of this machine."""
    place = PurePosixPath(path)
    return f"[{place.name}]({place.as_uri()})"


def _list_paths(what: str, paths: Sequence[str]) -> str:
    links = [f"* {markdown_link(path)}" for path in dict.fromkeys(paths)]
    return "\n".join([f"The {what} are:", *links]) if links else ""
