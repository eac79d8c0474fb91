"""The JSON Schemas of llm-tool-test's files."""

from __future__ import annotations

import copy

from pydantic import BaseModel

from evaluators.grading.gates import GATES
from evaluators.tool_use.tool import SERVER_NAME, SERVER_URL, McpServer, Tool
from scenarios.formats.json_schemas import (
    NOT_EMPTY,
    FileSchema,
    Models,
    Schema,
    SchemaWriter,
    any_of,
    has,
    schema_by_kind,
)
from scenarios.formats.llm_tool_test.config_file import FILE_NAME, SPELLED
from scenarios.formats.llm_tool_test.scenario_models import (
    Judge,
    RubricFile,
    ScenarioFile,
    SettingsFile,
)
from scenarios.formats.llm_tool_test.scenario_reader import FROM_CONFIG


def gate_schema(writer: SchemaWriter) -> Schema:
    """Return the schema of a gate; its model is chosen by its type. The writer knows the models of `GATES`."""
    for model in GATES.values():
        properties = writer.of(model)["properties"]
        for name, written in SPELLED.items():
            if name in properties:
                properties[written] = copy.deepcopy(properties[name])
    return schema_by_kind({name: writer.reference(model) for name, model in GATES.items()})


def add_tool_rules(writer: SchemaWriter) -> None:
    """Add what a tool's keys ask of each other. The writer knows the models."""
    server = writer.of(McpServer)
    server["properties"]["name"]["pattern"] = f"^{SERVER_NAME}$"
    server["properties"]["url"]["pattern"] = f"^(?:{SERVER_URL})?$"
    has_command, has_url = _has_text("command"), _has_text("url")
    server["oneOf"] = [has_command, has_url]
    of_urls: Schema = {"headers": {"maxProperties": 0}, "transport": {"enum": ["", None]}}
    server["allOf"] = [{"if": has_command, "then": {"properties": of_urls}}]
    program = any_of(_has_text("binary"), _has_text("command_pattern"))
    writer.of(Tool)["allOf"] = [{"if": has("mcp"), "then": {"not": program}}]


def _has_text(key: str) -> Schema:
    return {"required": [key], "properties": {key: NOT_EMPTY}}


def scenario_schema() -> Schema:
    """Return the schema of a scenario file."""
    models: Models = (ScenarioFile, Tool, McpServer, Judge, RubricFile, *GATES.values())
    writer = SchemaWriter(models, drops_empty=(BaseModel,))
    add_tool_rules(writer)
    target = writer.of(ScenarioFile)["properties"]["target"]
    target["anyOf"].append({"const": FROM_CONFIG, "description": f"The tool of {FILE_NAME}."})
    judge = writer.of(Judge)
    # A judge that is off may be incomplete.
    judge["if"] = {"required": ["enabled"], "properties": {"enabled": {"const": False}}}
    judge["else"] = {"allOf": [has("rubric"), has("pass_threshold")]}
    gates_inside: Schema = {"required": ["evaluation"], "properties": {"evaluation": has("gates")}}
    writer.of(ScenarioFile)["not"] = {"allOf": [has("gates"), gates_inside]}
    rubric = any_of({"type": "string"}, writer.reference(RubricFile), {"type": "null"})
    return writer.write(ScenarioFile, gate=gate_schema(writer), rubric=rubric)


def rubric_schema() -> Schema:
    """Return the schema of a rubric in a file of its own."""
    return SchemaWriter((RubricFile,)).write(RubricFile)


def build_llm_tool_test_settings_schema() -> Schema:
    """Return the schema of the settings."""
    writer = SchemaWriter((SettingsFile, Tool, McpServer))
    add_tool_rules(writer)
    return writer.write(SettingsFile)


SCHEMAS = (
    FileSchema(
        "llm-tool-test",
        "Scenario",
        "A scenario file of llm-tool-test.",
        ("scenarios/*.yaml",),
        scenario_schema,
    ),
    FileSchema(
        "llm-tool-test-config",
        "Settings of llm-tool-test",
        "Settings beside scenarios: the tool under test, targets' models and prices.",
        (FILE_NAME,),
        build_llm_tool_test_settings_schema,
    ),
    FileSchema("rubric", "Rubric", "A rubric that scenarios name.", ("rubrics/*.yaml",), rubric_schema),
)
