"""The cases of a skill: their keys, and the ids of cases and statements, which suites and imported results share.

The reader accepts other keys, so a case is checked there key by key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from evaluators.model import Json
from scenarios.formats.validation import reads_as

Text = Annotated[str, Field(pattern=r"\S")]
Statements = Annotated[list[Any], reads_as("statements")]


class StatementObject(BaseModel):
    """A statement as an object; the first text counts."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    text: Any = None
    """What must be true after the task, as one sentence."""
    criterion: Any = None
    assertion: Any = None
    description: Any = None
    statement: Any = None
    check: Any = None


class NamedFile(BaseModel):
    """A file of a case as an object."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    path: Text


class SkillCase(BaseModel):
    """One case of a skill, or one trigger query."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    id: int | Text | None = None
    """A number or a short name: it keeps the case's results together when cases are moved."""
    eval_id: int | Text | None = None
    """Another name of `id`, as in skill-creator's results."""
    prompt: Text | None = None
    """What the agent is asked."""
    query: Text | None = None
    """Another name of `prompt`, as trigger queries have it."""
    input: Text | None = None
    """Another name of `prompt`, as the four after it."""
    task: Text | None = None
    question: Text | None = None
    user_prompt: Text | None = None
    user_request: Text | None = None
    scenario: Text | None = None
    should_trigger: bool | str | None = None
    """Whether the agent must load the skill for this prompt, or must not; or the name of the skill that it must load."""
    shouldTrigger: bool | str | None = None
    expected_trigger: bool | str | None = None
    expected_skill: str | None = None
    """The skill that the agent must load; null for none."""
    expect_skill: str | None = None
    expected_output: str | None = None
    """What the agent should produce, as one text; a judge reads it with the statements, or alone."""
    expected_behavior: str | Statements | None = None
    """Another name of `expected_output`, or of `assertions` where it is a list."""
    expected: Any = None
    """Another name of `expected_output` where it is a text, as `expect`; of a trigger query, `trigger` or `no-trigger`."""
    expect: Any = None
    assertions: Statements | None = None
    """Statements that a judge checks one by one."""
    expectations: Statements | None = None
    """Another name of `assertions`."""
    checks: Statements | None = None
    """Another name of `assertions`."""
    success_criteria: Any = None
    """Another name of `assertions`, also as one text."""
    scorers: Statements | None = None
    """Another name of `assertions`."""
    forbidden: Text | list[Text] | None = None
    """Statements that must not hold."""
    must_contain: Any = None
    """Texts that the answer contains, as gates; `must_not_contain` those that it doesn't."""
    must_not_contain: Any = None
    expected_calls: Any = None
    """Commands that the agent runs, as gates: each with `command`, and `required_flags` and `forbidden_flags`."""
    expected_commands: Any = None
    """Another name of `expected_calls`, also with lines."""
    files: Text | list[Text | NamedFile] | None = None
    """Files and folders that the agent gets, relative to the eval file, the skill or the upload."""
    name: Any = None
    eval_name: Any = None
    title: Any = None
    description: Any = None
    skill: Any = None
    """The skill that the case is about; the file's folder says it, too."""
    skills: Any = None
    tags: Any = None


LISTS = (
    *(name for name, field in SkillCase.model_fields.items() if field.annotation == Statements | None),
    "success_criteria",
)
"""Names under which statements are written."""
TEXTS = tuple(StatementObject.model_fields)
"""Keys of a statement that is an object, the first one present counts."""
NOT_A_NAME = r"[^A-Za-z0-9_.:/@#-]"
"""Matches what names of modes, tags and skills don't have, and sentences do."""
EXPECTED = "expected_output"
"""The id of the statement that stands for a case's expected output where it has no others."""
_ID_LENGTH = 60
"""Characters of an id made from words."""


def key_of_id(id: Json) -> str:
    """Return the key of a case with this id: a text as it is, a number n as `eval-n`, as skill-creator calls its folder.

    Empty for anything else.
    """
    if isinstance(id, str):
        return id.strip()
    return f"eval-{id}" if isinstance(id, int) and not isinstance(id, bool) else ""


def statement_ids(texts: Sequence[str]) -> list[str]:
    """Return an id for each statement of a case, made from its words, so that people know it again."""
    ids: list[str] = []
    for text in texts:
        wanted = join_words(text) or "statement"
        ids.append(next(id for id in _number(wanted) if id not in ids))
    return ids


def join_words(text: str, joint: str = "_") -> str:
    """Return the words of a text, cut at a word."""
    joined = joint.join(re.findall(r"\w+", text.lower()))
    if len(joined) <= _ID_LENGTH:
        return joined
    return joined[: _ID_LENGTH + 1].rpartition(joint)[0] or joined[:_ID_LENGTH]


def _number(text: str) -> Iterator[str]:
    yield text
    number = 2
    while True:
        yield f"{text}_{number}"
        number += 1
