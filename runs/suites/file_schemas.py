"""All JSON Schemas of files that evalhub reads, by name."""

from __future__ import annotations

import json
from functools import cache

from runs.targets.model_server.script import ModelScript
from runs.targets.target_schemas import SCHEMAS as TARGETS
from scenarios.formats.agent_skills.schemas import SCHEMAS as AGENT_SKILLS
from scenarios.formats.agentv.schemas import SCHEMAS as AGENTV
from scenarios.formats.json_schemas import FileSchema, SchemaWriter
from scenarios.formats.llm_tool_test.schemas import SCHEMAS as LLM_TOOL_TEST
from scenarios.formats.tool_forge.schemas import SCHEMAS as TOOL_FORGE
from scenarios.tool_descriptions import ToolDescriptions

_DESCRIPTIONS = FileSchema(
    "tool-descriptions",
    "Descriptions of an MCP server",
    "Descriptions in place of an MCP server's own, for --tool-descriptions.",
    ("descriptions.yaml",),
    lambda: SchemaWriter((ToolDescriptions,)).write(ToolDescriptions),
)
_SCRIPT = FileSchema(
    "model-script",
    "Script of a model",
    "What a model says turn by turn, for the model server.",
    ("script.yaml",),
    lambda: SchemaWriter((ModelScript,)).write(ModelScript),
)
FILE_SCHEMAS: dict[str, FileSchema] = {
    schema.name: schema
    for schema in (
        *LLM_TOOL_TEST,
        *TOOL_FORGE,
        *AGENTV,
        *AGENT_SKILLS,
        *TARGETS,
        _DESCRIPTIONS,
        _SCRIPT,
    )
}
"""The schemas in the order in which pages list them."""


@cache
def schema_text(name: str) -> str:
    """Return a schema as JSON. Raises `KeyError` for an unknown name."""
    return json.dumps(FILE_SCHEMAS[name].document(), indent=1, ensure_ascii=False) + "\n"
