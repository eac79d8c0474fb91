"""The tools of a project as they are now: from a barrel of tool files, a JSON list or an MCP answer."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tree_sitter import Node

from evaluators.model import Json
from evaluators.statistics.staleness import RegisteredTool, Registry
from scenarios.formats.js_source import (
    NotStatic,
    ObjectLiteral,
    UnreadableSource,
    exports_from,
    object_literals,
    parse,
)
from scenarios.formats.parsed import ScenarioFileError
from scenarios.formats.text_files import decode_document, read_json

Part = TypeVar("Part")
BARRELS = ("tools.exports.ts", "tools.exports.js")
_TOOL_FILE = re.compile(r"\.tool\.[jt]s$")
_SCRIPTS = (".ts", ".js", ".mts", ".mjs", ".cts", ".cjs")
_TYPED = (".ts", ".mts", ".cts")
_SCHEMAS = ("inputSchema", "input_schema", "schema", "parameters")


@dataclass(frozen=True)
class RegistryReading:
    """A registry, or None with the reason among the warnings."""

    registry: Registry | None
    warnings: tuple[str, ...] = ()


@dataclass
class _ToolCollector:
    """The tools found so far, by name, and what could not be read."""

    tools: dict[str, RegisteredTool] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def add(self, name: str, tool: RegisteredTool, file: str) -> None:
        if name in self.tools:
            self.warnings.append(
                f"{file}: The registry defines the tool {name} more than once; the last definition is used."
            )
        self.tools[name] = tool

    def reading(self) -> RegistryReading:
        return RegistryReading(Registry(len(self.tools), self.tools), tuple(self.warnings))


def read_registry(files: Mapping[str, bytes], path: str) -> RegistryReading:
    """Read the registry at a path of `files`: a JSON file, a barrel, a tool file, or a folder of them.

    Nothing is executed. Tools with the status `removed` are left out. What cannot be read is a warning.
    """
    path = posixpath.normpath(path)
    if path in files:
        return _read_json(files, path) if path.endswith(".json") else _read_scripts(files, path)
    below = [file for file in sorted(files) if path == "." or file.startswith(f"{path}/")]
    barrel = next((file for file in below if posixpath.basename(file) in BARRELS), None)
    if barrel is not None:
        return _read_scripts(files, barrel)
    collector = _ToolCollector()
    for file in below:
        if _TOOL_FILE.search(file):
            _add_literals(collector, files, file, ())
    if not collector.tools:
        collector.warnings.append(f"There is no tool registry at {path}.")
        return RegistryReading(None, tuple(collector.warnings))
    return collector.reading()


def registry_of(value: Json, file: str = "registry") -> RegistryReading:
    """Return the registry that decoded JSON holds: a list of tools, `{"tools": […]}` or an MCP `tools/list` answer."""
    answer = value.get("result", value) if isinstance(value, dict) else value
    listed = answer.get("tools") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        return RegistryReading(None, (f"{file}: There is no list of tools in it.",))
    collector = _ToolCollector()
    for index, entry in enumerate(listed):
        fields = entry.get("function", entry) if isinstance(entry, dict) else None
        if not isinstance(fields, dict) or not isinstance(fields.get("name"), str) or not fields["name"]:
            collector.warnings.append(f"{file}: Entry {index + 1} has no name and was left out.")
        elif fields.get("status") != "removed":
            collector.add(fields["name"], _registered_tool(fields), file)
    return collector.reading()


def _registered_tool(entry: Mapping[str, Json]) -> RegisteredTool:
    schema = next((entry[key] for key in _SCHEMAS if entry.get(key) is not None), None)
    return RegisteredTool(_text(entry.get("description")), _text(entry.get("version")), schema)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _read_json(files: Mapping[str, bytes], path: str) -> RegistryReading:
    try:
        value = read_json(files[path], path).value
    except ScenarioFileError as error:
        return RegistryReading(None, tuple(str(problem) for problem in error.problems))
    return registry_of(value, path)


def _read_scripts(files: Mapping[str, bytes], path: str) -> RegistryReading:
    collector = _ToolCollector()
    exports = _read(collector, files, path, lambda module: list(exports_from(module)))
    if not exports:
        _add_literals(collector, files, path, ())
    for names, source in exports:
        file = _resolve(files, path, source)
        if file is None:
            collector.warnings.append(f"{path}: There is no file '{source}', so its tools were left out.")
        else:
            _add_literals(collector, files, file, names)
    if not collector.tools:
        collector.warnings.append(f"{path}: There is no tool in it.")
        return RegistryReading(None, tuple(collector.warnings))
    return collector.reading()


def _resolve(files: Mapping[str, bytes], barrel: str, source: str) -> str | None:
    path = posixpath.normpath(posixpath.join(posixpath.dirname(barrel), source))
    stem, ending = posixpath.splitext(path)
    # A TypeScript barrel may name the file that its source is compiled to.
    stems = [path, stem] if ending in _SCRIPTS else [path]
    tried = [path, *(stem + ending for stem in stems for ending in _SCRIPTS)]
    return next((file for file in tried if file in files), None)


def _add_literals(
    collector: _ToolCollector, files: Mapping[str, bytes], file: str, names: Sequence[str]
) -> None:
    """Add the tools of a file: those assigned to one of the names, all where no name is known."""
    tools = [
        literal
        for literal in _read(collector, files, file, object_literals)
        if ("name" in literal.fields and any(key in literal.fields for key in ("description", *_SCHEMAS)))
    ]
    named = [literal for literal in tools if literal.name in names]
    if not tools:
        collector.warnings.append(f"{file}: There is no tool that can be read without running it.")
    for literal in named or tools:
        _add_literal(collector, literal, file)


def _read(
    collector: _ToolCollector, files: Mapping[str, bytes], file: str, read: Callable[[Node], list[Part]]
) -> list[Part]:
    """Return what is read of a module; where it cannot be parsed, nothing and a warning."""
    try:
        return read(parse(decode_document(files[file], file), typed=file.endswith(_TYPED)))
    except UnreadableSource as error:
        collector.warn(f"{file}: {error}")
    except ScenarioFileError as error:
        collector.warn(str(error))
    return []


def _add_literal(collector: _ToolCollector, literal: ObjectLiteral, file: str) -> None:
    name = _text(_static(literal, "name"))
    if name is None:
        collector.warnings.append(f"{file}: The name of a tool is computed, so it was left out.")
    elif _static(literal, "status") != "removed":
        fields = {key: _static(literal, key) for key in ("description", "version", *_SCHEMAS)}
        collector.add(name, _registered_tool(fields), file)


def _static(literal: ObjectLiteral, key: str) -> Json:
    """Return a field's value; None where it is missing or computed."""
    try:
        return literal.value(key)
    except NotStatic:
        return None
