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


TOOLS = (
    DemoTool(
        "Taskmgr basics",
        "taskmgr",
        ("create", "list", "export", "link", "complete", "report", "import", "archive"),
        ("tasks", "blocked-tasks", "subtasks"),
    ),
    DemoTool(
        "Ledger bookkeeping",
        "ledgerline",
        ("post", "balance", "reconcile", "export", "close", "split", "tag"),
        ("entries", "foreign-entries", "draft-entries"),
    ),
    DemoTool(
        "Parcel tracking",
        "parcel",
        ("track", "route", "label", "hold", "return", "quote", "merge", "audit", "notify", "weigh"),
        ("parcels", "pallets"),
    ),
    DemoTool(
        "Photo library",
        "shoebox",
        ("add", "tag", "find", "album", "share", "rotate", "dedupe"),
        ("photos", "raw-photos", "scans"),
    ),
)
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
GATES = ("file_exists", "command_output_contains", "no_transcript_errors")
ISSUES = (
    "Guessed the flag --output-format before it opened help.",
    "Repeated a failing command without changing it.",
    "Read the guidance only after the second failure.",
    "Left a temporary file in the workspace.",
    "Took the identifier from an older listing.",
    "Stopped before it checked the result.",
    "Used an interactive prompt where --yes would have done.",
    "Exported every record instead of the requested ones.",
)
HIGHLIGHTS = (
    "Opened the help of the subcommand after its first failure.",
    "Checked the result with a listing before it answered.",
    "Followed the example of the guidance word for word.",
    "Undid its own mistake before continuing.",
    "Named the step that it could not do.",
    "Needed one command for each step of the task.",
)
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
        {"type": "command_output_contains", "command": f"{tool.binary} list", "substring": noun},
        {"type": "no_transcript_errors"},
    ]
    judge = {"enabled": True, "rubric": "rubrics/guidance.yaml", "pass_threshold": THRESHOLD}
    return yaml.dump(
        {
            "name": tool.key(place),
            "description": f"Generated: {verb} {noun} with {tool.binary}.",
            "target": {"binary": tool.binary},
            "template_folder": "desk",
            "task": {"prompt": f"Use {tool.binary} to {verb} the {noun.replace('-', ' ')}.{clearer}\n"},
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
