"""A trial's guidance: copies where its agent looks for instructions and skills, and how far it got."""

from __future__ import annotations

from evaluators.model import Transcript
from evaluators.tool_use.exposure import (
    ExposedDocument,
    Exposure,
    estimated_tokens,
    find_quoted_lines,
    opened_paths,
)
from runs.targets.providers.options import NO_COPY, ResolvedTarget
from scenarios.guidance import INSTRUCTIONS, Guidance, copies_for, skill_copies

READS = {
    "claude_code": "CLAUDE.md",
    "codex": "AGENTS.md",
    "opencode": "AGENTS.md",
    "gemini_cli": "GEMINI.md",
    "qwen_code": "QWEN.md",
    "copilot_cli": "AGENTS.md",
}
"""The file that each kind of agent loads by its own rule."""
SKILL_FOLDERS = {
    "claude_code": ".claude/skills",
    "gemini_cli": ".gemini/skills",
    "qwen_code": ".qwen/skills",
    "copilot_cli": ".github/skills",
    "vscode": ".github/skills",
    "vscode-insiders": ".github/skills",
}
"""Where agents that don't look into `.agents/skills` find a workspace's skills."""


def file_read_by(target: ResolvedTarget) -> str:
    """Return the guidance file that a target's agent loads; empty if unknown."""
    guidance_file = target.options.guidance_file
    return guidance_file if guidance_file and guidance_file != NO_COPY else READS.get(target.kind, "")


def make_copies(target: ResolvedTarget, documents: Guidance, taken: frozenset[str]) -> Guidance:
    """Return the copies of guidance to lay under the agent's own name, and of skills in its own folder."""
    name = file_read_by(target)
    named = copies_for(documents, taken, name) if name and target.options.guidance_file != NO_COPY else ()
    folder = target.options.skills_folder or SKILL_FOLDERS.get(target.kind, "")
    return (*named, *skill_copies(documents, taken, folder)) if folder else named


def measure_exposure(
    documents: Guidance,
    transcript: Transcript,
    *,
    reads: str,
    laid: Guidance = (),
    sent: bool = False,
    prompt: str = "",
) -> Exposure:
    """Return how far documents got in a trial.

    `reads` is the file that the agent loads, empty if unknown; `laid` are the copies under that name; `sent` is
    whether the documents were in the prompt.
    """
    texts = [ExposedDocument(file.path, file.content.decode("utf-8", "replace")) for file in documents]
    paths = [*(file.path for file in documents), *(file.path for file in laid)]
    instructions = [path for path in paths if path.rpartition("/")[2] in (*INSTRUCTIONS, reads)]
    reached = sent or not reads or not instructions or any(path.endswith(reads) for path in instructions)
    opened = opened_paths(paths, transcript)
    quoted = find_quoted_lines(texts, transcript, prompt)
    return Exposure(
        delivered=reached,
        in_context=sent or (reads in paths if reads else None),
        opened=bool(opened),
        quoted=bool(quoted),
        opened_paths=opened,
        quotes=quoted,
        laid_as=tuple(file.path for file in laid),
        tokens=sum(estimated_tokens(document.text) for document in texts),
        why=""
        if reached
        else f"The agent reads {reads}, and the workspace has only {', '.join(instructions)}.",
    )
