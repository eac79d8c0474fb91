"""The JSON Schemas of a skill's evals, its trigger queries and its gates."""

from __future__ import annotations

from evaluators.grading.gates import GATES
from evaluators.tool_use.tool import McpServer, Tool
from scenarios.formats.agent_skills.case_lists import (
    CASE_LISTS,
    FILES,
    JUDGED,
    NOT_A_NAME,
    PROMPTS,
    SKILL_KEYS,
    TEXTS,
    TRIGGER_KEYS,
    TRIGGER_LISTS,
    NamedFile,
    SkillCase,
    StatementObject,
)
from scenarios.formats.agent_skills.gates_file import NAME, GatesModel
from scenarios.formats.json_schemas import (
    NOT_EMPTY,
    FileSchema,
    Schema,
    SchemaWriter,
    any_of,
    has,
    schema_of_list,
)
from scenarios.formats.llm_tool_test.schemas import add_tool_rules, gate_schema


def evals_schema() -> Schema:
    """Return the schema of a skill's cases."""
    writer, case = _cases()
    lists = {name: schema_of_list(case) for name in CASE_LISTS}
    root: Schema = {
        "anyOf": [
            {"type": "object", "anyOf": [{"required": [name]} for name in CASE_LISTS], "properties": lists},
            schema_of_list(case),
            {"allOf": [case, has(*sorted(JUDGED))]},
        ],
        "properties": {"skill_name": {"description": "The skill's name, as in SKILL.md."}},
    }
    return writer.write(root, statements=_statements(writer))


def triggers_schema() -> Schema:
    """Return the schema of trigger queries: one list, or two by whether the skill must be loaded."""
    writer, case = _cases()
    queries = schema_of_list(
        {"allOf": [case, has(*TRIGGER_KEYS, *SKILL_KEYS, "expected", "expect", "skill")]}, minItems=1
    )
    by_answer = schema_of_list({"if": {"type": "string"}, "then": NOT_EMPTY, "else": case})
    grouped: Schema = {
        "type": "object",
        "anyOf": [{"required": [name]} for name in TRIGGER_LISTS],
        "properties": dict.fromkeys(TRIGGER_LISTS, by_answer),
    }
    named: Schema = {
        "type": "object",
        "anyOf": [{"required": [name]} for name in CASE_LISTS],
        "properties": dict.fromkeys(CASE_LISTS, queries),
    }
    return writer.write(any_of(queries, grouped, named), statements=_statements(writer))


def gates_schema() -> Schema:
    """Return the schema of the gates file."""
    writer = SchemaWriter((GatesModel, Tool, McpServer, *GATES.values()))
    add_tool_rules(writer)
    tool = any_of(NOT_EMPTY, writer.reference(Tool), {"type": "null"})
    return writer.write(GatesModel, gate=gate_schema(writer), tool=tool)


def _cases() -> tuple[SchemaWriter, Schema]:
    writer = SchemaWriter((SkillCase, NamedFile, StatementObject))
    case = writer.of(SkillCase)
    case["allOf"] = [has(*PROMPTS)]
    # Other keys are stored, but a list of statements under another name would be lost.
    texts = any_of(*({"required": [key], "properties": {key: NOT_EMPTY}} for key in TEXTS))
    statement = any_of({"type": "string"}, {"type": "object", **texts})
    not_a_name = any_of({"type": "string", "pattern": NOT_A_NAME}, {"type": "object"})
    case["additionalProperties"] = {"not": schema_of_list(statement, contains=not_a_name)}
    return writer, writer.reference(SkillCase)


def _statements(writer: SchemaWriter) -> Schema:
    """Return the schema of a list of statements: texts, objects with one, or checks."""
    check = {"anyOf": [{"required": ["type"]}, {"required": ["kind"]}], "minProperties": 2}
    texts = ({"required": [key], "properties": {key: NOT_EMPTY}} for key in TEXTS)
    statement = {**writer.of(StatementObject), "anyOf": [check, *texts]}
    return schema_of_list({"if": {"type": "string"}, "then": NOT_EMPTY, "else": statement})


SCHEMAS = (
    FileSchema(
        "agent-skills",
        "Evals of a skill",
        "The cases of an Agent Skill, in evals/ of its folder.",
        tuple(f"evals/{name}" for name in FILES),
        evals_schema,
    ),
    FileSchema(
        "trigger-queries",
        "Trigger queries of a skill",
        "A list of prompts, each with whether the agent must load the skill.",
        ("evals/*trigger*.json",),
        triggers_schema,
    ),
    FileSchema(
        "gates",
        "Gates of a skill",
        "Checks without a judge beside a skill's evals, and the tool that they test.",
        (f"evals/{NAME}",),
        gates_schema,
    ),
)
