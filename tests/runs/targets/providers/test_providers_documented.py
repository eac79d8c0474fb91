"""Holds docs/providers.md complete and true: every field is there, and its examples and commands are what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runs.targets.agents import claude_code, codex, opencode
from runs.targets.definitions import read_targets, resolve_definition
from runs.targets.providers.options import Options
from runs.targets.providers.registry import OPTIONS, make_provider
from tests.runs.containments import containment
from tests.runs.targets.providers.agents import agent, invocation

pytestmark = pytest.mark.one_database

TEXT = (Path(__file__).parents[4] / "docs/providers.md").read_text(encoding="utf-8")


def section(kind: str) -> str:
    found = re.search(rf"^## .*`{re.escape(kind)}`.*\n(?s:.*?)(?=^## |\Z)", TEXT, re.MULTILINE)
    assert found, f"docs/providers.md has no section with `{kind}` in its heading."
    return found[0]


@pytest.mark.parametrize("kind", OPTIONS)
def test_every_kind_is_documented(kind):
    assert section(kind)


@pytest.mark.parametrize(
    ("kind", "spellings"),
    [
        (kind, spellings)
        for kind in OPTIONS
        for name, spellings in OPTIONS[kind].spellings().items()
        if name not in Options.model_fields
    ],
    ids=str,
)
def test_a_field_is_documented(kind, spellings):
    assert any(f"`{name}`" in section(kind) for name in spellings)


EXAMPLES = [
    target
    for text in re.findall(r"```yaml\n(targets:.*?)```", TEXT, re.DOTALL)
    for target in read_targets(text.encode(), "providers.md")
]


@pytest.mark.parametrize("target", EXAMPLES, ids=lambda target: target.name)
def test_an_example_makes_a_provider(target):
    variables = dict.fromkeys(re.findall(r"\$\{\{ (\w+) \}\}", TEXT), "a-documented-value")
    assert make_provider(resolve_definition(target, variables), containment())


@pytest.mark.parametrize(
    ("kind", "program", "more"),
    [("codex", "codex", {}), ("claude_code", "claude", {"max_turns": 9}), ("opencode", "opencode", {})],
)
def test_an_agent_starts_as_documented(tmp_path, kind, program, more):
    [started] = re.findall(
        rf"`({program} [^`]*)`", TEXT.partition("**How they start.**")[2].partition("\n\n")[0]
    )
    given = {"model": "m", "args": ["--own"], "env": {"FAKE_STREAM": kind}, **more}
    agent(kind, "codex" if kind == "codex" else "session", **given).invoke(
        invocation(tmp_path, prompt="Go.", in_workspace=True)
    )
    call = (tmp_path / "workspace/call.txt").read_text()
    words = re.sub(r"\[(--[\w-]+ [MN]|args)\]", r"\1", " ".join(started.split()))
    for name, value in {" M": " m", " N": " 9", " args": " --own", " PROMPT": ""}.items():
        words = words.replace(name, value)
    arguments = call.split("\n")[0].removeprefix("arguments: ") if kind == "codex" else " ".join(call.split())
    assert arguments.startswith(words.removeprefix(f"{program} "))


@pytest.mark.parametrize(
    ("title", "facts"),
    [("Codex", codex.FACTS), ("Claude Code", claude_code.FACTS), ("opencode", opencode.FACTS)],
    ids=str,
)
def test_an_agent_s_package_and_oldest_version_are_documented(title, facts):
    text = " ".join(section("codex").split())
    assert f"`{facts.install}`" in text
    assert f"{title} {'.'.join(map(str, facts.oldest))}" in text
