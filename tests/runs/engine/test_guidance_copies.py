"""Which copies of guidance an agent gets, and whether it was delivered."""

from __future__ import annotations

import pytest

from evaluators.model import Event, Transcript
from runs.engine.workspace.guidance import file_read_by, make_copies, measure_exposure
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import OPTIONS
from scenarios.formats.parsed import FixtureFile


def target(kind: str, **options: str) -> ResolvedTarget:
    return ResolvedTarget("agent", kind, OPTIONS[kind].model_validate(options))


def documents(*paths: str) -> tuple[FixtureFile, ...]:
    return tuple(FixtureFile(path, path.encode()) for path in paths)


@pytest.mark.parametrize(
    ("kind", "options", "paths", "laid"),
    [
        ("claude_code", {}, ["AGENTS.md"], {"CLAUDE.md": "AGENTS.md"}),
        ("claude_code", {}, ["AGENTS.md", "sub/AGENTS.md"], {"CLAUDE.md": "AGENTS.md", "sub/CLAUDE.md": "sub/AGENTS.md"}),
        ("claude_code", {}, ["AGENTS.md", "CLAUDE.md"], {}),
        ("claude_code", {}, ["skills/x/SKILL.md"], {}),
        ("claude_code", {"guidance_file": "none"}, ["AGENTS.md"], {}),
        ("codex", {}, ["CLAUDE.md", "GEMINI.md"], {"AGENTS.md": "CLAUDE.md"}),
        ("opencode", {}, ["AGENTS.md"], {}),
        ("codex", {"guidance_file": "RULES.md"}, ["AGENTS.md"], {"RULES.md": "AGENTS.md"}),
        ("mock", {}, ["AGENTS.md"], {}),
        ("claude_code", {}, [".agents/skills/x/SKILL.md", ".agents/skills/x/run.sh"],
         {".claude/skills/x/SKILL.md": ".agents/skills/x/SKILL.md", ".claude/skills/x/run.sh": ".agents/skills/x/run.sh"}),
        ("vscode", {}, [".agents/skills/x/SKILL.md"], {".github/skills/x/SKILL.md": ".agents/skills/x/SKILL.md"}),
        ("codex", {}, [".agents/skills/x/SKILL.md"], {}),
        ("opencode", {}, [".agents/skills/x/SKILL.md"], {}),
        ("codex", {"skills_folder": "./tools/skills/"}, [".agents/skills/x/SKILL.md"],
         {"tools/skills/x/SKILL.md": ".agents/skills/x/SKILL.md"}),
        ("claude_code", {"guidance_file": "none"}, [".agents/skills/x/SKILL.md"],
         {".claude/skills/x/SKILL.md": ".agents/skills/x/SKILL.md"}),
    ],
)  # fmt: skip
def test_each_agent_gets_its_own_name(kind, options, paths, laid):
    found = make_copies(target(kind, **options), documents(*paths), frozenset(paths))
    assert {file.path: file.content.decode() for file in found} == laid


def test_a_file_of_the_workspace_is_not_replaced():
    taken = frozenset(("AGENTS.md", "CLAUDE.md"))
    assert make_copies(target("claude_code"), documents("AGENTS.md"), taken) == ()


def test_guidance_without_its_copy_is_not_delivered():
    reads = file_read_by(target("claude_code", guidance_file="none"))
    found = measure_exposure(documents("AGENTS.md"), Transcript(), reads=reads)
    assert (found.delivered, found.in_context) == (False, False)
    assert found.why == "The agent reads CLAUDE.md, and the workspace has only AGENTS.md."


@pytest.mark.parametrize("name", ["/CLAUDE.md", "../CLAUDE.md", ""])
def test_a_name_outside_the_workspace_is_refused(name):
    with pytest.raises(ValueError, match="write a file name in the workspace"):
        target("codex", guidance_file=name)


@pytest.mark.parametrize("folder", ["/skills", "../skills", "~/.codex/skills", " "])
def test_a_folder_of_skills_outside_the_workspace_is_refused(folder):
    with pytest.raises(ValueError, match="write a folder in the workspace"):
        target("codex", skills_folder=folder)


def test_a_skill_that_the_agent_reads_in_its_own_folder_counts_as_opened():
    own, laid = documents(".agents/skills/x/SKILL.md"), documents(".claude/skills/x/SKILL.md")
    read = Event(type="tool_call", id="1", name="Read", input={"file_path": "/w/.claude/skills/x/SKILL.md"})
    found = measure_exposure(own, Transcript(events=(read,)), reads="CLAUDE.md", laid=laid)
    assert (found.delivered, found.opened, found.opened_paths) == (True, True, (".claude/skills/x/SKILL.md",))
