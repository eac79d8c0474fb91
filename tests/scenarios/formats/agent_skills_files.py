"""Skills in the shapes in which public repositories write them, with counts that were made by hand.

Each sample has the quirks of one or more public files: names of lists, ids, places of files, of the skill, and scorers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.formats import parse_files

SKILL = """---
name: notetool
description: Takes notes with notetool. Use it when somebody wants to note something.
---
# Notes

```bash
notetool add --title "X"
notetool list
```
"""


def evals(*cases: dict[str, Any], skill_name: str = "notetool", **more: Any) -> str:
    return json.dumps({"skill_name": skill_name, "evals": list(cases), **more}, indent=2, ensure_ascii=False)


def case(id: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": id, "prompt": "Add a note titled X.", **more}


def skill(evals_json: str, **files: str) -> dict[str, str]:
    """Return a skill's folder; names of `files` are paths with `__` for a slash."""
    return {"SKILL.md": SKILL, "evals/evals.json": evals_json, **files}


def parse(files: Mapping[str, str | bytes], name: str = "notetool", **more: Any) -> tuple[Any, ...]:
    contents = {path: each if isinstance(each, bytes) else each.encode() for path, each in files.items()}
    return parse_files(contents, name=name, **more)


@dataclass(frozen=True)
class Sample:
    """An upload, and what must come of it."""

    files: dict[str, str]
    suites: dict[str, int]
    """The number of cases by suite."""
    statements: int
    gates: int = 0
    inputs: int = 0
    """Files that cases name."""
    lints: tuple[str, ...] = ()


NO_TOOL = "format/tool-not-named"
TWO = ["The note exists.", "It is titled X."]
PLAIN_SKILL = SKILL.split("#")[0]

# fmt: off
SAMPLES = {
    "expected output alone": Sample(skill(evals(case(0, expected_output="The note exists."), case(1, expected_output="Two notes exist."))), {"notetool": 2}, statements=2, lints=(NO_TOOL,)),
    "expectations as texts": Sample(skill(evals(case(expected_output="A note.", expectations=TWO, files=[]))), {"notetool": 1}, statements=2, lints=(NO_TOOL,)),
    "assertions as objects with id and type": Sample(
        skill(
            evals(
                case(
                    expected_output="A note.",
                    assertions=[
                        {"id": "uses-add", "text": "Uses notetool add", "type": "string_match"},
                        {"id": "titled", "text": "The title is X", "type": "semantic"},
                    ],
                )
            )
        ),
        {"notetool": 1},
        statements=2,
        lints=(NO_TOOL,),
    ),
    "checks, names and ids as texts": Sample(
        skill(
            evals(
                {"id": "add-note", "name": "Add", "prompt": "Add X", "checks": TWO}, case("b", eval_name="B")
            )
        ),
        {"notetool": 2},
        statements=2,
        lints=(NO_TOOL, "format/nothing-to-judge"),
    ),
    "scorers: a pattern is a gate, a criterion a statement": Sample(
        skill(
            evals(
                case(
                    scorers=[
                        {"type": "regex", "pattern": "notetool\\s+add", "name": "adds"},
                        {"type": "llm_judge", "criterion": "The answer names the note."},
                    ]
                )
            )
        ),
        {"notetool": 1},
        statements=1,
        gates=1,
        lints=(NO_TOOL,),
    ),
    "files beside evals.json, in the skill and at the root": Sample(
        {
            "plugin.json": "{}",
            "data/root.csv": "a",
            "skills/notetool/SKILL.md": SKILL,
            "skills/notetool/examples/own.txt": "b",
            "skills/notetool/evals/evals.json": evals(
                case(1, files=["files/near.json"], expected_output="x"),
                case(2, files=["examples/own.txt", "data/root.csv"], expected_output="x"),
                case(3, files=["evals/files"], expected_output="x"),
            ),
            "skills/notetool/evals/files/near.json": "{not JSON",
        },
        {"notetool": 3},
        statements=3,
        inputs=4,
        lints=(NO_TOOL,),
    ),
    "the skill in skills/ and its evals at the root": Sample({"skills/notetool/SKILL.md": SKILL, "evals/evals.json": evals(case(assertions=TWO))}, {"notetool": 1}, statements=2, lints=(NO_TOOL,)),
    "a plug-in with two skills": Sample(
        {
            ".claude-plugin/plugin.json": '{"name": "desk"}',
            "skills/notetool/SKILL.md": PLAIN_SKILL,
            "skills/planner/SKILL.md": PLAIN_SKILL.replace("name: notetool", "name: planner"),
            "evals/evals.json": evals(case(prompt="/desk:plan diagnose", assertions=TWO), skill_name="desk"),
        },
        {"desk": 1},
        statements=2,
    ),
    "prompts in Chinese, with a note on top": Sample(skill(evals(case(prompt="请添加一条笔记", assertions=["笔记存在", "标题是 X"]), note="草稿", description="测试")), {"notetool": 1}, statements=2, lints=(NO_TOOL,)),
    "a list of trigger queries": Sample(
        skill(
            evals(case(assertions=TWO)),
            **{
                "evals/trigger-eval.json": json.dumps(
                    [
                        {"query": "Note this down for me", "should_trigger": True},
                        {"query": "What is a notebook?", "should_trigger": False},
                        {"query": "记一下", "should_trigger": True},
                    ]
                )
            },
        ),
        {"notetool": 1, "notetool-triggers": 3},
        statements=2,
        gates=3,
        lints=(NO_TOOL,),
    ),
    "trigger queries in the shape of evals": Sample(
        skill(
            evals(
                {"prompt": "Note this", "should_trigger": True},
                {"prompt": "Draw this", "should_trigger": False},
            )
        ),
        {"notetool-triggers": 2},
        statements=0,
        gates=2,
    ),
    "gates beside the statements": Sample(
        skill(
            evals(case(1, assertions=TWO), case(2)),
            **{
                "evals/gates.yaml": (
                    "tool: notetool\n"
                    "workspace: board\n"
                    "gates:\n  - type: no_transcript_errors\n"
                    "cases:\n"
                    "  1:\n    gates:\n      - {type: file_exists, path: notes.txt}\n"
                    "  eval-2: {tags: [slow], timeout_secs: 60}\n"
                ),
                "evals/board/notes.txt": "",
            },
        ),
        {"notetool": 2},
        statements=2,
        gates=3,
    ),
    **{
        f"cases under another name: {name}": Sample(
            {
                "SKILL.md": SKILL,
                "evals/evals.json": json.dumps({"skill": "notetool", name: [case(assertions=TWO)]}),
            },
            {"notetool": 1},
            statements=2,
            lints=(NO_TOOL,),
        )
        for name in ("cases", "tests", "test_cases", "scenarios", "queries")
    },
    "cases as a bare list": Sample(skill(json.dumps([case(1, assertions=TWO), case(2, expected_output="A note.")])), {"notetool": 2}, statements=3, lints=(NO_TOOL,)),
    "one case as a file, as Anthropic's guide has it": Sample(
        skill(json.dumps({"id": 1, "skills": ["notetool"], "query": "Add X", "expected_behavior": TWO})),
        {"notetool": 1},
        statements=2,
        lints=(NO_TOOL,),
    ),
    "a list of such cases": Sample(
        skill(
            json.dumps(
                [
                    {"id": 1, "skills": ["notetool"], "query": "Add X", "expected_behavior": TWO},
                    {"id": 2, "skills": ["notetool"], "query": "Add Y", "expected_behavior": ["Y exists."]},
                ]
            )
        ),
        {"notetool": 2},
        statements=3,
        lints=(NO_TOOL,),
    ),
    "the prompt and what is expected under other names": Sample(
        skill(
            evals(
                {"id": 1, "user_request": "Add X", "expected_behavior": "A note."},
                {"id": 2, "input": "Add Y", "expected_behavior": "A note.", "expected_output": "Y exists."},
            )
        ),
        {"notetool": 2},
        statements=2,
        lints=(NO_TOOL,),
    ),
    "the same statements under two names, for two programs": Sample(skill(evals(case(expectations=TWO, assertions=[*TWO, "It is short."]))), {"notetool": 1}, statements=3, lints=(NO_TOOL,)),
    "two lists of trigger queries, as objects and texts": Sample(
        skill(
            evals(case(assertions=TWO)),
            **{
                "evals/triggers.json": json.dumps(
                    {
                        "should_trigger": [{"id": "a", "query": "Note this"}, "Write this down"],
                        "should_not_trigger": ["What is a notebook?"],
                    }
                )
            },
        ),
        {"notetool": 1, "notetool-triggers": 3},
        statements=2,
        gates=3,
        lints=(NO_TOOL,),
    ),
    "trigger queries in an object": Sample(
        skill(
            evals(case(assertions=TWO)),
            **{
                "evals/triggers.json": json.dumps(
                    {"queries": [{"query": "Note this", "should_trigger": True}], "version": 1}
                )
            },
        ),
        {"notetool": 1, "notetool-triggers": 1},
        statements=2,
        gates=1,
        lints=(NO_TOOL,),
    ),
    "keys that nothing reads, of the file, a case and a statement": Sample(
        skill(
            evals(
                case(
                    difficulty="hard",
                    assertions=[{"criterion": "Delivery", "threshold": 8, "rubric": {"8": "All."}}],
                ),
                common_assertions=TWO,
            )
        ),
        {"notetool": 1},
        statements=1,
        lints=(NO_TOOL, "format/unread-key"),
    ),
    "a folder that nothing reads": Sample(
        skill(evals(case(assertions=TWO, fixture="shop")), **{"evals/fixtures/shop/prices.csv": "a,1"}),
        {"notetool": 1},
        statements=2,
        lints=(NO_TOOL, "format/unread-file"),
    ),
    "results of earlier evals with the keys of evals": Sample(
        skill(
            evals(case(assertions=TWO)),
            **{
                "notetool-workspace/iteration-1/benchmark.json": json.dumps(
                    {"skill_name": "notetool", "evals": [{"name": "adds", "with_skill": {"passed": 2}}]}
                )
            },
        ),
        {"notetool": 1},
        statements=2,
        lints=(NO_TOOL,),
    ),
    "a file with prompts that nothing reads": Sample(
        skill(
            evals(case(assertions=TWO)),
            **{"evals/more.json": json.dumps({"cases": [{"prompt": "Note this", "expect": ["notetool"]}]})},
        ),
        {"notetool": 1},
        statements=2,
        lints=("format/unread-file", NO_TOOL),
    ),
    "files of the skill itself": Sample(
        skill(
            evals(case(assertions=TWO, files=["SKILL.md", "references/keys.md", "assets/list.txt"])),
            **{"references/keys.md": "k", "assets/list.txt": "x"},
        ),
        {"notetool": 1},
        statements=2,
        inputs=1,
        lints=(NO_TOOL, "format/own-file", "format/own-file"),
    ),
    "names beside statements aren't statements": Sample(
        skill(evals(case(assertions=TWO, evaluation_modes=["routing", "execution"]))),
        {"notetool": 1},
        statements=2,
        lints=(NO_TOOL, "format/unread-key"),
    ),
    "cases.json, ids as in results, and what is expected as one word": Sample(
        {
            "SKILL.md": SKILL,
            "evals/cases.json": json.dumps([{"eval_id": 1, "prompt": "Add X", "expect": "A note."}]),
        },
        {"notetool": 1},
        statements=1,
        lints=(NO_TOOL,),
    ),
    "the plug-in's name before the skill's": Sample(skill(evals(case(assertions=TWO), skill_name="desk:notetool")), {"desk:notetool": 1}, statements=2, lints=(NO_TOOL,)),
}
# fmt: on
