"""Guideline files that a case names are guidance: another text of one makes no other suite version."""

from __future__ import annotations

from scenarios.formats import parse_files
from scenarios.formats.parsed import ParsedSuite
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.storing import suite_hash, task_hash

EVAL = b"""\
evalcases:
  - id: a
    expected_outcome: good
    input_messages:
      - role: user
        content:
          - {type: text, value: Hi}
          - {type: file, value: style.instructions.md}
          - {type: file, value: data.txt}
"""


def suite(style: bytes = b"short", data: bytes = b"1") -> ParsedSuite:
    (found,) = parse_files({"x.yaml": EVAL, "style.instructions.md": style, "data.txt": data}, name="x")
    return found


def test_guidelines_are_the_guidance_of_their_suite():
    found = suite()
    assert named_guidelines(found) == ("style.instructions.md",)
    assert [(file.path, file.content) for file in suite_guidance(found, named_guidelines(found))] == [
        ("style.instructions.md", b"short")
    ]


def test_guideline_changes_keep_the_version_input_changes_do_not():
    before, named = suite(), named_guidelines(suite())
    assert suite_hash(suite(style=b"long"), named) == suite_hash(before, named)
    assert suite_hash(suite(data=b"2"), named) != suite_hash(before, named)


def test_target_and_conversation_are_not_part_of_the_task():
    (spec,) = suite().scenarios
    assert task_hash(spec.model_copy(update={"target": "t", "conversation": "c"})) == task_hash(spec)
    assert task_hash(spec.model_copy(update={"agent_prompt": "other"})) != task_hash(spec)
