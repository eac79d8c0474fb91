"""A small AgentV upload to change in one place."""

from __future__ import annotations

from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite
from scenarios.spec import ScenarioSpec

EVAL = """\
$schema: agentv-eval-v2
description: Questions on arithmetic.
dataset: sums
target: default-agent
execution:
  threshold: 0.8
  evaluators:
    - type: llm_judge
      prompt: prompts-for-judges/strict.md
evalcases:
  - id: product
    expected_outcome: It says 42.
    conversation_id: talk-1
    note: A simple one.
    input_messages:
      - role: user
        content:
          - type: text
            value: What is in the table?
          - type: file
            value: data/table.csv
          - type: file
            value: /docs/style.instructions.md
    expected_messages:
      - role: assistant
        content: "42"
        tool_calls:
          - tool: multiply
            input: {a: 6, b: 7, c: null}
  - id: script
    outcome: It adds.
    input_messages:
      - {role: system, content: Be brief.}
      - {role: user, content: Add 1 and 2.}
    execution:
      threshold: 1
      evaluators:
        - name: sum
          type: code_judge
          script: python check.py
          cwd: judges
          weight: 2
        - type: tool_trajectory
          mode: in_order
          expected:
            - tool: add
"""

FILES = {
    "evals/sums.yaml": EVAL,
    "evals/data/table.csv": "a,b\r\n6,7\r\n",
    "evals/judges/check.py": "print('{}')\n",
    "evals/.env": "SECRET=1\n",
    "docs/style.instructions.md": "Write well.\n",
    "docs/unrelated.md": "no\n",
    "prompts-for-judges/strict.md": "Be strict with {{candidate_answer}}.\n",
    "targets.yaml": "targets:\n  - {name: default-agent, provider: mock}\n",
}


def upload(eval_file: str = EVAL, **more: str | bytes) -> dict[str, bytes]:
    """Return an upload of one eval file with what it refers to; `more` are files by name."""
    files: dict[str, str | bytes] = {**FILES, "evals/sums.yaml": eval_file, **more}
    return {
        name: content if isinstance(content, bytes) else content.encode() for name, content in files.items()
    }


def changed(old: str, new: str) -> str:
    """Return the eval file with one text replaced."""
    assert EVAL.count(old) == 1, f"{old!r} must stand once in the eval file"
    return EVAL.replace(old, new)


def case(text: str) -> dict[str, bytes]:
    """Return an upload of one eval file with one case, whose keys follow its id and message."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    start = "evalcases:\n  - id: one\n    expected_outcome: good\n    input_messages: [{role: user, content: Hi}]\n"
    return {"one.yaml": (start + lines).encode()}


def suite(files: dict[str, bytes] | None = None) -> ParsedSuite:
    (found,) = parse_files(files or upload(), name="bundle")
    return found


def spec(files: dict[str, bytes] | None = None, key: str = "product") -> ScenarioSpec:
    return next(one for one in suite(files).scenarios if one.key == key)


def lints(files: dict[str, bytes]) -> list[str]:
    return [lint.id for lint in suite(files).lints]
