"""The JSON Schemas of AgentV's eval files, the lines of its datasets and its settings."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from evaluators.grading.assertions.resource_limits import CostLimit, ExecutionLimits, TokenLimit
from evaluators.grading.assertions.tool_trajectory import ExpectedTool, ToolTrajectory
from evaluators.grading.evaluator import BaseEvaluator, ExpectedCall, Message
from evaluators.grading.judges.checklist_judge import ChecklistJudge
from evaluators.grading.judges.code_judge import CodeJudge
from evaluators.grading.judges.llm_judge import LlmJudge
from evaluators.grading.scores import AGGREGATORS
from evaluators.grading.scores.composite_evaluator import CompositeEvaluator
from scenarios.formats.agentv import eval_models
from scenarios.formats.agentv.assertion_reader import LIMITS, SPELLINGS
from scenarios.formats.agentv.evaluator_reader import ALIASES, BY_CRITERIA, MODELS
from scenarios.formats.agentv.file_versions import CASES_KEYS, OF_CASE, OF_LIST, Spellings
from scenarios.formats.agentv.guideline_settings import ABOVE, BESIDE
from scenarios.formats.agentv.imported_cases import ImportsFile
from scenarios.formats.agentv.prompt_matrix import TEMPLATES, VARIABLE_ALONE, PromptFile
from scenarios.formats.json_schemas import (
    NOT_EMPTY,
    FileSchema,
    Models,
    Schema,
    SchemaWriter,
    any_of,
    has,
    is_one_of,
    make_reference,
    or_empty,
    schema_by_kind,
    schema_of_list,
    spell_keys,
)

_DROPS_EMPTY: tuple[type[BaseModel], ...] = (
    eval_models.EvalFile,
    eval_models.EvalCaseFile,
    eval_models.Execution,
    eval_models.DefaultTest,
    BaseEvaluator,
    *AGGREGATORS.values(),
    eval_models.RubricItemFile,
    PromptFile,
)
_SPELLED: Mapping[type[BaseModel], Spellings] = {
    eval_models.EvalFile: OF_LIST,
    eval_models.EvalCaseFile: OF_CASE,
    eval_models.Execution: OF_LIST,
    eval_models.DefaultTest: OF_LIST,
    CompositeEvaluator: OF_LIST,
    eval_models.AssertSetFile: OF_LIST,
}
"""Models whose keys have other names in other versions."""
_LATER = CASES_KEYS[-1]


def build_agentv_eval_schema() -> Schema:
    """Return the schema of an eval file of any version."""
    writer, parts = _writer()
    file = writer.of(eval_models.EvalFile)
    case = writer.reference(eval_models.EvalCaseFile)
    with_input: Schema = {"allOf": [case, _has_input()]}
    cases = {key: or_empty(schema_of_list(with_input, minItems=1)) for key in CASES_KEYS[:-1]}
    cases_file = {"type": "string", "description": "The path of a file with cases."}
    case_list = schema_of_list({"if": {"type": "string"}, "else": case}, minItems=1)
    file["properties"] |= {**cases, _LATER: any_of(cases_file, case_list, {"type": "null"})}
    file["properties"]["imports"] = or_empty(writer.reference(ImportsFile))
    file["oneOf"] = [*(has(key) for key in CASES_KEYS[:-1]), has(_LATER, "imports")]
    # Where the file has prompts, they are the input of its cases.
    own_input = {"properties": {_LATER: {"items": {"if": {"type": "object"}, "then": _has_input()}}}}
    file.setdefault("allOf", []).append({"if": {"required": ["prompts"]}, "else": own_input})
    return writer.write(eval_models.EvalFile, **parts)


def dataset_line_schema() -> Schema:
    """Return the schema of a line of a dataset, which is a case."""
    writer, parts = _writer()
    writer.of(eval_models.EvalCaseFile).setdefault("allOf", []).append(_has_input())
    return writer.write(eval_models.EvalCaseFile, **parts)


def build_agentv_settings_schema() -> Schema:
    """Return the schema of the settings."""
    return SchemaWriter((eval_models.GuidelineSettings,)).write(eval_models.GuidelineSettings)


def _has_input() -> Schema:
    return has(*OF_CASE["input_messages"])


def _writer() -> tuple[SchemaWriter, dict[str, Schema]]:
    """Return a writer that knows all models, and the parts that `reads_as` names."""
    others = (
        Message,
        eval_models.RubricItemFile,
        ExpectedCall,
        ExpectedTool,
        ImportsFile,
        PromptFile,
    )
    values = eval_models.VALUE_MODELS.values()
    models: Models = (*_SPELLED, *MODELS.values(), *AGGREGATORS.values(), *others, *values)
    writer = SchemaWriter(models, drops_empty=_DROPS_EMPTY)
    case = writer.of(eval_models.EvalCaseFile)
    # Whether a case needs an input of its own depends on its file.
    case["required"].remove("input_messages")
    case["properties"]["input_files"] = any_of(case["properties"]["input_files"], make_reference("variable"))
    _add_rules(writer)
    for model, spellings in _SPELLED.items():
        spell_keys(writer.of(model), spellings)
    entries: Models = (*MODELS.values(), ExpectedTool)
    spelled: Models = (*entries, eval_models.RubricItemFile)
    for model in dict.fromkeys(spelled):
        spell_keys(writer.of(model), SPELLINGS)
    kinds = _evaluators(writer)
    for filled in dict.fromkeys((*entries, *values)):
        _allow_variables(writer.of(filled))
    default_test = any_of({"type": "string"}, writer.reference(eval_models.DefaultTest), {"type": "null"})
    item = writer.reference(eval_models.RubricItemFile)
    entry: Schema = {"type": ["string", "object"], "if": {"type": "object"}, "then": kinds}
    parts: dict[str, Schema] = {
        **_messages(writer),
        "variable": {"type": "string", "pattern": VARIABLE_ALONE, "description": "A variable of `vars`."},
        "statement": {"if": {"type": "string"}, "then": NOT_EMPTY, "else": item},
        "evaluator": entry,
        "aggregator": _aggregator(writer),
        "default_test": default_test,
        "prompt": _prompt(writer),
    }
    return writer, parts


def _prompt(writer: SchemaWriter) -> Schema:
    """Return the schema of an entry of `prompts`; a mapping is a message, or has a name."""
    named: Schema = {"type": "object", "not": has("role", "content")}
    return {
        "type": ["string", "array", "object"],
        "if": named,
        "then": writer.reference(PromptFile),
    }


def _messages(writer: SchemaWriter) -> dict[str, Schema]:
    """Return the schemas of what a case asks and expects, and of a message's content."""
    message = writer.reference(Message)
    shorthand: Schema = {"if": {"required": ["role"]}, "then": message, "else": make_reference("content")}
    has_role: Schema = {"contains": {"type": "object", "required": ["role"]}}
    parts = any_of(
        {"type": "string"},
        {
            "type": "object",
            "if": is_one_of("type", ["text", "file"]),
            "then": {"required": ["value"], "properties": {"value": NOT_EMPTY}},
        },
    )
    data: Schema = {"minItems": 1, "items": {"type": "object", "not": {"required": ["type"]}}}
    return {
        "input": _by_type(schema_of_list(message, minItems=1), shorthand),
        "expected": _by_type(
            {"if": has_role, "then": {"items": message}, "else": make_reference("content")}, shorthand
        ),
        "content": _by_type(
            {"if": data, "then": {}, "else": {"items": parts}}, {"minProperties": 1}, "string", "null"
        ),
    }


def _by_type(array: Schema, mapping: Schema, *others: str) -> Schema:
    """Return the schema of a value that is a text or another simple value, a list or a mapping."""
    return {
        "type": [*(others or ("string", "null")), "array", "object"],
        "allOf": [
            {"if": {"type": "array"}, "then": array},
            {"if": {"type": "object"}, "then": mapping},
        ],
    }


def _add_rules(writer: SchemaWriter) -> None:
    """Add what the readers ask of keys together."""
    calls: Schema = {
        "required": ["tool_calls"],
        "properties": {"tool_calls": {"type": "array", "minItems": 1}},
    }
    writer.of(Message)["properties"]["content"] = make_reference("content")
    writer.of(Message)["if"] = calls
    writer.of(Message)["then"] = {"properties": {"role": {"const": "assistant"}}}
    kinds: Models = (*MODELS.values(), *AGGREGATORS.values())
    for kind in dict.fromkeys(kinds):
        # A kind has other names in other versions.
        writer.of(kind)["properties"]["type"] = {"type": "string"}
    for kind in dict.fromkeys(MODELS.values()):
        fields = writer.of(kind)["properties"]
        least = fields["min_score"]
        fields["required"] = any_of({"type": "boolean"}, *least["anyOf"])
        if issubclass(kind, LlmJudge | ChecklistJudge | eval_models.AssertSetFile):
            fields["threshold"] = least
        if issubclass(kind, CompositeEvaluator):
            fields["evaluators"] = schema_of_list(make_reference("evaluator"), minItems=1)
    writer.of(CompositeEvaluator)["properties"]["aggregator"] = make_reference("aggregator")
    statements = schema_of_list(make_reference("statement"))
    writer.of(LlmJudge)["properties"]["rubrics"] = or_empty(statements)
    writer.of(ChecklistJudge)["properties"]["rubrics"] = any_of(NOT_EMPTY, {**statements, "minItems": 1})
    spell_keys(writer.of(ChecklistJudge), {"rubrics": ("rubrics", "criteria", "value")})
    spell_keys(writer.of(CostLimit), {"budget": ("budget", "threshold")})
    item = writer.of(eval_models.RubricItemFile)
    item["required"].remove("id")
    item["properties"]["id"] = or_empty(item["properties"]["id"])
    trajectory = writer.of(ToolTrajectory)
    trajectory["if"] = is_one_of("mode", ["any_order"])
    trajectory["then"], trajectory["else"] = has("minimums"), has("expected")
    for model in (TokenLimit, ExecutionLimits):
        names = [name for name in model.model_fields if name.startswith(LIMITS)]
        writer.of(model).setdefault("allOf", []).append(has(*names))
    writer.of(eval_models.ToolCountFile)["allOf"] = [has("name", "pattern")]
    # Keys that a script's model doesn't know are the script's settings.
    script = writer.of(CodeJudge)
    del script["additionalProperties"]
    script["propertyNames"] = {"not": {"enum": sorted(CodeJudge.unrunnable)}}


def _evaluators(writer: SchemaWriter) -> Schema:
    """Return the schema of an entry that is a mapping: an include, or an evaluator chosen by its type."""
    conditions = [
        {"if": {"properties": {"type": {"pattern": _matching(kind)}}, "required": ["type"]}, "then": schema}
        for kind, schema in _kinds(writer).items()
    ]
    names = [*MODELS, *ALIASES]
    any_name = "|".join(_matching(kind).strip("^$") for kind in MODELS)
    type_: Schema = any_of({"enum": names}, {"type": "string", "pattern": f"^(?:{any_name})$"})
    include: Schema = {"properties": {"include": {"type": "string"}}, "additionalProperties": False}
    evaluator: Schema = {"required": ["type"], "properties": {"type": type_}, "allOf": conditions}
    return {"if": {"required": ["include"], "maxProperties": 1}, "then": include, "else": evaluator}


def _kinds(writer: SchemaWriter) -> Mapping[str, Schema]:
    """Return the schema of each kind's entry."""
    kinds = {kind: writer.reference(model) for kind, model in MODELS.items()}
    for kind, model in eval_models.VALUE_MODELS.items():
        value: Schema = any_of(
            writer.reference(model), *_short_values(writer, kind), make_reference("variable")
        )
        kinds[kind] = {"allOf": [kinds[kind], {"properties": {"value": value}}]}
    statements = any_of(*({"required": [name]} for name in ("rubrics", "criteria", "value")))
    by_criteria: Schema = {"properties": {"type": {"pattern": f"^(?:not-)?(?:{'|'.join(BY_CRITERIA)})$"}}}
    unstated: Schema = {**any_of({"required": ["prompt"]}, by_criteria), "not": statements}
    kinds["rubric"] = {"if": unstated, "then": kinds["llm_judge"], "else": kinds["rubric"]}
    kinds["json-schema"] = {"allOf": [kinds["json-schema"], has("value")]}
    return kinds


def _short_values(writer: SchemaWriter, kind: str) -> list[Schema]:
    """Return what may replace a kind's value."""
    if kind == "trajectory:tool-used":
        texts: Schema = writer.of(eval_models.TextsFile)["properties"]["value"]
        return [texts]
    if kind == "trajectory:tool-sequence":
        steps: Schema = writer.of(eval_models.ToolSequenceFile)["properties"]["steps"]
        return [steps]
    return [NOT_EMPTY] if kind == "trajectory:goal-success" else []


def _matching(kind: str) -> str:
    """Return a pattern of a kind's names in all versions."""
    names = [kind, *(alias for alias, target in ALIASES.items() if target == kind)]
    pattern = "|".join(name.replace("_", "-").replace("-", "[-_]") for name in names)
    return f"^(?:not-)?(?:{pattern})$"


def _aggregator(writer: SchemaWriter) -> Schema:
    """Return the schema of a composite's aggregator; an empty one is the default."""
    kinds = {name: writer.reference(model) for name, model in AGGREGATORS.items()}
    spelled = {
        spelling: schema
        for name, schema in kinds.items()
        for word in dict.fromkeys((name, name.replace("judge", "grader"), *_aliases_of(name)))
        for spelling in dict.fromkeys((word, word.replace("_", "-")))
    }
    return {
        "type": ["object", "null"],
        "if": {"type": "object", "minProperties": 1},
        "then": schema_by_kind(spelled),
    }


def _aliases_of(aggregator: str) -> list[str]:
    return [alias for alias, name in eval_models.AGGREGATOR_ALIASES.items() if name == aggregator]


def _allow_variables(schema: Schema) -> None:
    """Let a variable replace a value that isn't text, as in files whose assertions are filled in."""
    properties = schema["properties"]
    for name, value in properties.items():
        if name not in TEMPLATES and name not in ("type", "include") and not _takes_text(value):
            properties[name] = any_of(_with_variables(value), make_reference("variable"))


def _with_variables(value: Schema) -> Schema:
    items = value.get("items")
    if not isinstance(items, dict) or "$ref" in items or _takes_text(items):
        return value
    return {**value, "items": any_of(items, make_reference("variable"))}


def _takes_text(value: Schema) -> bool:
    """Return whether any text fits, a variable among them."""
    options = value.get("anyOf", [value])
    return not value.keys() - {"description"} or any(
        "string" in option.get("type", ()) and not {"enum", "const"} & option.keys() for option in options
    )


SCHEMAS = (
    FileSchema(
        "agentv",
        "Eval file of AgentV",
        "An eval file of AgentV, of any version from 0.14.",
        ("*.eval.yaml", "evals/*.yaml"),
        build_agentv_eval_schema,
    ),
    FileSchema(
        "agentv-dataset",
        "Line of a dataset of AgentV",
        "A line of a JSONL dataset of AgentV.",
        ("*.jsonl",),
        dataset_line_schema,
    ),
    FileSchema(
        "agentv-config",
        "Settings of AgentV",
        "Settings of AgentV; evalhub reads the patterns of guideline files.",
        (BESIDE, ABOVE),
        build_agentv_settings_schema,
    ),
)
