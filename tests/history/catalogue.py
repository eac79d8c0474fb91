"""Define the generated history's tools, suites, targets, documents and judge statements."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from scenarios.bundles import Bundle


@dataclass(frozen=True)
class DemoTool:
    """A tool under test: its suite's name, its program, its subcommands and their objects."""

    suite: str
    binary: str
    subcommands: tuple[str, ...]
    nouns: tuple[str, ...]

    def key(self, place: int) -> str:
        """Return the key of the scenario at this index."""
        verb = self.subcommands[place % len(self.subcommands)]
        noun = self.nouns[place // len(self.subcommands) % len(self.nouns)]
        return f"{verb}-{noun}"


# fmt: off
TOOLS = (
    DemoTool("Taskmgr basics", "taskmgr", ("create", "list", "export", "link", "complete", "report", "import", "archive"), ("tasks", "blocked-tasks", "subtasks")),
    DemoTool("Ledger bookkeeping", "ledgerline", ("post", "balance", "reconcile", "export", "close", "split", "tag"), ("entries", "foreign-entries", "draft-entries")),
    DemoTool("Parcel tracking", "parcel", ("track", "route", "label", "hold", "return", "quote", "merge", "audit", "notify", "weigh"), ("parcels", "pallets")),
    DemoTool("Photo library", "shoebox", ("add", "tag", "find", "album", "share", "rotate", "dedupe"), ("photos", "raw-photos", "scans")),
)
# fmt: on
SCENARIOS = 20
"""Scenarios per suite."""
RUBRIC = {
    "criteria": [
        {"id": "task_completion", "weight": 0.5, "description": "Does every step of the task."},
        {"id": "command_correctness", "weight": 0.3, "description": "Uses commands and flags that exist."},
        {
            "id": "documentation_sufficiency",
            "weight": 0.2,
            "description": "Found what it needed in the guide.",
        },
    ]
}
THRESHOLD = 0.7
TARGETS = (
    ("claude-code · sonnet", "claude-sonnet", 1.1),
    ("codex · mini", "gpt-mini", 0.5),
    ("opencode · local", "", -0.2),
)
"""Name, model and skill in logits."""
JUDGE = "demo-judge"
GATES = ("file_exists", "file_contains", "command_output_contains")
PASSED, UNWRITTEN, WRONG, UNCHANGED = "passed", "unwritten", "wrong", "unchanged"
LOST: dict[str, tuple[str, ...]] = {
    PASSED: (),
    UNWRITTEN: ("file_exists", "file_contains"),
    WRONG: ("file_contains",),
    UNCHANGED: ("command_output_contains",),
}
"""How a session ends, with the gates that it loses."""
REASONS = {
    "file_exists": "result.json does not exist.",
    "file_contains": "result.json does not contain '{noun}'.",
    "command_output_contains": "The output of '{binary} {verb}' does not contain '{noun}'.",
}
"""Why each gate is lost."""
ISSUES = {
    "Guessed the flag --output-format, which does not exist.": "guessed",
    "Repeated a failing command without changing it.": "repeated",
    "Failed commands without opening help.": "no help",
    "Stopped before it checked the result.": "unchecked",
    "Never wrote result.json.": UNWRITTEN,
    "Wrote other records than the requested ones.": WRONG,
    "Wrote the file and left the tool's records as they were.": UNCHANGED,
}
HIGHLIGHTS = {
    "Read the guidance before its first command.": "read",
    "Opened the help of the subcommand after a failure.": "help",
    "Checked the result with a listing before it answered.": "checked",
    "Followed the example of the guidance word for word.": "clean",
    "Said that the last step is not done.": "lost",
}
"""A judge's statements, each with the fact of a session that it needs."""
TAGS = ("nightly", "release", "weekly", "smoke")


def bundle(tool: DemoTool, *, version: int, guidance: int) -> Bundle:
    """Return a suite as uploaded: scenarios, rubric, and a fixture with guidance."""
    files = {f"{tool.key(place)}.yaml": _scenario(tool, place, version) for place in range(SCENARIOS)}
    files["rubrics/guidance.yaml"] = yaml.dump(RUBRIC, Dumper=yaml.CSafeDumper)
    files["templates/desk/AGENTS.md"] = _guide(tool, guidance)
    files["templates/desk/README.md"] = f"A workspace for {tool.binary}. Everything here is generated.\n"
    return Bundle(tool.suite, {path: text.encode() for path, text in files.items()})


def _scenario(tool: DemoTool, place: int, version: int) -> str:
    verb, _, noun = tool.key(place).partition("-")
    # A later version words some tasks more clearly, as real suites do.
    clearer = " Check the result before you answer." if version > 1 and place % 5 == 0 else ""
    gates = [
        {"type": "file_exists", "path": "result.json"},
        {"type": "file_contains", "path": "result.json", "substring": noun},
        {"type": "command_output_contains", "command": f"{tool.binary} {verb}", "substring": noun},
    ]
    judge = {"enabled": True, "rubric": "rubrics/guidance.yaml", "pass_threshold": THRESHOLD}
    return yaml.dump(
        {
            "name": tool.key(place),
            "description": f"Generated: {verb} {noun} with {tool.binary}.",
            "target": {"binary": tool.binary},
            "template_folder": "desk",
            "task": {"prompt": f"Use {tool.binary} to {verb} the {noun} as result.json.{clearer}\n"},
            "evaluation": {"gates": gates, "judge": judge},
            "tags": [verb, "smoke" if place < SCENARIOS // 2 else "deep"],
            "tier": place % 3,
        },
        Dumper=yaml.CSafeDumper,
    )


def _guide(tool: DemoTool, number: int) -> str:
    lines = [f"# Working with {tool.binary}", "", f"Revision {number} of a generated guide.", ""]
    lines += [f"- `{tool.binary} {name} --help` shows how to {name}." for name in tool.subcommands]
    return "\n".join(lines) + "\n"
