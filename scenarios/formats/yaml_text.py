"""Read untrusted YAML: check it event by event (tags, depth, aliases) before building it.

PyYAML's fast loader accepts duplicate keys silently, and overflows the stack on deep nesting. Scalars follow YAML
1.2 (`no` is text, `010` is ten, a date is text), as in the programs that define these formats.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, field

import yaml

from evaluators.model import Json
from scenarios.formats.parsed import (
    Location,
    PositionedDocument,
    Positions,
    Problem,
    ScenarioFileError,
    line_of,
)
from scenarios.formats.text_files import (
    MAX_BYTES,
    MAX_DEPTH,
    bad_character,
    decode_document,
    decoding_error,
    duplicate_key,
    make_empty_error,
    too_deep,
)

_ALLOWED_TAGS = {None, "!", "tag:yaml.org,2002:str"}


@dataclass
class Scan:
    """Checks the parts of a document before it is composed."""

    file: str
    open: list[str | None] = field(default_factory=list)
    """The anchor of each open collection."""
    documents: int = 0
    read: int = 0
    """Characters and values so far, those that aliases repeat with them."""
    repeated: int = 0
    """Those that aliases repeat."""
    starts: list[int] = field(default_factory=list)
    """What was read when each open collection began."""
    sizes: dict[str | None, int] = field(default_factory=dict)
    """How much each anchor names."""

    def check(self, text: str) -> None:
        """Raise `ScenarioFileError` at the first part that isn't allowed, `yaml.YAMLError` for invalid YAML."""
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.DocumentStartEvent):
                self._document(line)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor, line)
            elif isinstance(event, yaml.ScalarEvent):
                self._scalar(event, line)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._enter(event, line)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor = self.open.pop()
                self.sizes[anchor] = self.read - self.starts.pop()

    def _document(self, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise decoding_error(
                self.file,
                line,
                "The file contains more than one YAML document.",
                fix="Put each scenario into its own file.",
                id="format/several-documents",
            )

    def _alias(self, anchor: str | None, line: int) -> None:
        if anchor in self.open:
            raise decoding_error(
                self.file,
                line,
                f"The alias '{anchor}' contains itself.",
                fix="Replace it by its value.",
                id="format/alias-of-itself",
            )
        size = self.sizes.get(anchor, 0)
        self.read += size
        self.repeated += size
        if self.repeated > MAX_BYTES:
            raise decoding_error(
                self.file,
                line,
                f"The file's aliases repeat more than {MAX_BYTES:,} characters.",
                fix="Write the values plainly, or repeat less.",
                id="format/aliases-too-large",
            )

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        self.sizes[event.anchor] = len(event.value) + 1
        self.read += len(event.value) + 1
        if "\0" in event.value:
            raise bad_character(self.file, line)

    def _enter(self, event: yaml.CollectionStartEvent, line: int) -> None:
        self._check_tag(event.tag, line)
        self.open.append(event.anchor)
        self.starts.append(self.read)
        self.read += 1
        if len(self.open) > MAX_DEPTH:
            raise too_deep(self.file, line)

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in _ALLOWED_TAGS:
            raise decoding_error(
                self.file,
                line,
                f"The YAML tag '{tag}' is not allowed.",
                fix="Remove the tag and write the value plainly.",
                id="format/yaml-tag",
            )


_CORE = "tag:yaml.org,2002:"


class BlockDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(_CORE + "str", text, style="|" if "\n" in text else None)


BlockDumper.add_representer(str, _text_node)


class _Loader(yaml.CSafeLoader):
    """The safe loader with YAML 1.2 scalars and text keys."""

    yaml_implicit_resolvers = {}

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Json]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(None, None, "a mapping is expected here", node.start_mark)
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=True) for key, value in node.value}

    def _key(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        raise yaml.constructor.ConstructorError(None, None, "a key must be plain text", node.start_mark)

    def construct_number(self, node: yaml.ScalarNode) -> float:
        value = float(node.value)
        if math.isfinite(value):
            return value
        raise yaml.constructor.ConstructorError(None, None, "the number is too large", node.start_mark)

    def construct_integer(self, node: yaml.ScalarNode) -> int:
        base = {"0x": 16, "0o": 8}.get(node.value[:2], 10)
        return int(node.value, base)


# At most 300 digits because int() is quadratic and longer numbers do not fit a float.
_RESOLVERS = {
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "int": (r"^(?:[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,200})$", list("-+0123456789")),
    "float": (
        r"^[-+]?(?:\.[0-9]{1,300}|[0-9]{1,300}(?:\.[0-9]{0,300})?)(?:[eE][-+]?[0-9]{1,9})?$",
        list("-+.0123456789"),
    ),
    "merge": (r"^<<$", ["<"]),
}
for _name, (_pattern, _first) in _RESOLVERS.items():
    _Loader.add_implicit_resolver(_CORE + _name, re.compile(_pattern), _first)
_Loader.add_constructor(_CORE + "int", _Loader.construct_integer)
_Loader.add_constructor(_CORE + "float", _Loader.construct_number)


def read_yaml(content: bytes, file: str) -> PositionedDocument:
    """Decode one YAML document. Raises `ScenarioFileError` with the line of the error."""
    text = decode_document(content, file)
    try:
        Scan(file).check(text)
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise make_empty_error(file)
        lines, problems = _walk(root, file)
        if problems:
            raise ScenarioFileError(problems)
        value = loader.construct_document(root)
    except yaml.YAMLError as error:
        raise _not_yaml(error, text, file) from error
    if value is None:
        raise make_empty_error(file)
    return PositionedDocument(file=file, value=value, positions=Positions(lines))


def _walk(root: yaml.Node, file: str) -> tuple[dict[Location, int], list[Problem]]:
    """Return the line of every value and the problems of its keys; an aliased node is visited once."""
    lines: dict[Location, int] = {(): root.start_mark.line + 1}
    problems: list[Problem] = []
    seen: set[int] = set()
    stack: list[tuple[Location, yaml.Node]] = [((), root)]
    while stack:
        location, node = stack.pop()
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            problems += _duplicate_keys(node, location, file)
        # In text order, so aliased nodes have the lines of their definition.
        for part, mark, child in reversed(_children(node)):
            lines[(*location, part)] = mark.line + 1
            stack.append(((*location, part), child))
    return lines, problems


def _children(node: yaml.Node) -> list[tuple[str | int, yaml.Mark, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [
            (str(key.value), key.start_mark, value)
            for key, value in node.value
            if isinstance(key, yaml.ScalarNode)
        ]
    return [(index, item.start_mark, item) for index, item in enumerate(node.value)]


def _duplicate_keys(node: yaml.MappingNode, location: Location, file: str) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            problems.append(
                duplicate_key(file, key.start_mark.line + 1, line_of((*location, key.value)), key.value)
            )
        seen.add(key.value)
    return problems


def _not_yaml(error: yaml.YAMLError, text: str, file: str) -> ScenarioFileError:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        line = text.encode()[: getattr(error, "position", 0)].count(b"\n") + 1
        reason = getattr(error, "reason", None) or "it contains a character that YAML does not allow"
        return decoding_error(
            file, line, f"This is not YAML: {reason}.", fix="Remove the character.", id="format/not-yaml"
        )
    line = mark.line + 1
    lines = text.splitlines()
    if mark.line < len(lines) and re.match(r" *\t", lines[mark.line]):
        return decoding_error(
            file,
            line,
            "The line is indented with a tab, which YAML does not allow.",
            fix="Indent with spaces.",
            id="format/tab",
        )
    reason = getattr(error, "problem", None) or "it cannot be read"
    fix = f"Check the indentation, quotes and brackets near column {mark.column + 1}."
    return decoding_error(file, line, f"This is not YAML: {reason}.", fix=fix, id="format/not-yaml")
