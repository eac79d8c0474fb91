"""The keys of a skill's cases and statements. The reader accepts others, so a case is checked there key by key."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

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
    prompt: Text | None = None
    """What the agent is asked."""
    query: Text | None = None
    """Another name of `prompt`, as trigger queries have it."""
    should_trigger: bool | None = None
    """Whether the agent must load the skill for this prompt, or must not."""
    expected_output: str | None = None
    """What the agent should produce, as one text; a judge reads it with the statements, or alone."""
    assertions: Statements | None = None
    """Statements that a judge checks one by one."""
    expectations: Statements | None = None
    """Another name of `assertions`."""
    checks: Statements | None = None
    """Another name of `assertions`."""
    scorers: Statements | None = None
    """Another name of `assertions`; one of type `regex` is a gate."""
    files: Text | list[Text | NamedFile] | None = None
    """Files and folders that the agent gets, relative to the eval file, the skill or the upload."""
    name: Any = None
    eval_name: Any = None
    title: Any = None
    tags: Any = None


LISTS = tuple(name for name, field in SkillCase.model_fields.items() if field.annotation == Statements | None)
"""Names under which statements are written."""
TEXTS = tuple(StatementObject.model_fields)
"""Keys of a statement that is an object, the first one present counts."""
PROMPTS = ("prompt", "query")
"""Names of a prompt, the first one present counts."""
