"""Object literals and exports of a JavaScript or TypeScript module, which is parsed and never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import isfinite

from msgspec import Struct
from tree_sitter import Language, Node, Parser

from evaluators.model import Json
from scenarios.formats.text_files import MAX_DEPTH

_DESCENDED = frozenset(
    (
        *(
            "program",
            "export_statement",
            "lexical_declaration",
            "variable_declaration",
            "expression_statement",
        ),
        *("assignment_expression", "call_expression", "member_expression", "new_expression", "arguments"),
        *("array", "parenthesized_expression", "await_expression", "sequence_expression"),
        *("as_expression", "satisfies_expression", "type_assertion", "non_null_expression"),
    )
)
"""Where object literals of a module are looked for: in no function, class, block or type."""
_TYPED = frozenset(
    ("as_expression", "satisfies_expression", "non_null_expression", "parenthesized_expression")
)
_KEYS = frozenset(("property_identifier", "string", "number"))
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "undefined": None}
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "b": "\b", "v": "\v", "f": "\f", "r": "\r", "0": "\0", "\n": "", "\r": ""}


class UnreadableSource(ValueError):
    """The text cannot be parsed; the message is a sentence with the line."""


class NotStatic(ValueError):
    """A value is computed, so it is unknown without running the source."""


class ObjectLiteral(Struct, frozen=True):
    """An object literal that a module assigns, exports or hands to a function."""

    name: str
    """The variable it is assigned to; `default` for the default export, empty for neither."""
    fields: Mapping[str, Node]
    """Each value by its key; methods and spreads are left out."""

    def value(self, key: str) -> Json:
        """Return the value of a field. Raises `NotStatic` where it is missing or computed."""
        if key not in self.fields:
            raise NotStatic(f"There is no '{key}'.")
        return static_value(self.fields[key])


def parse(source: str, *, typed: bool = True) -> Node:
    """Return the syntax tree of a TypeScript module, or of a JavaScript one."""
    return Parser(_language(typed)).parse(source.replace("\r\n", "\n").encode()).root_node


def _language(typed: bool) -> Language:
    # The grammars take a moment to load, and most commands read no module.
    if typed:
        from tree_sitter_typescript import language_typescript

        return Language(language_typescript())
    from tree_sitter_javascript import language

    return Language(language())


def object_literals(module: Node) -> list[ObjectLiteral]:
    """Return the object literals outside of functions and classes, in their order. Raises `UnreadableSource`."""
    literals: list[ObjectLiteral] = []
    left = [(module, "")]
    while left:
        node, name = left.pop()
        if node.is_error or node.is_missing:
            raise UnreadableSource(f"Line {node.start_point.row + 1} cannot be parsed.")
        if node.type == "object":
            literals.append(ObjectLiteral(name, _fields(node)))
        elif node.type == "variable_declarator":
            left += [(value, _text(node.child_by_field_name("name")))] if (value := _value(node)) else []
        elif node.type in _DESCENDED:
            if node.type == "export_statement" and any(each.type == "default" for each in node.children):
                name = "default"
            left += [(each, name) for each in reversed(node.children)]
    return literals


def exports_from(module: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the names and the source of each `export { … } from '…'`; no names for `export * from`."""
    for node in module.named_children:
        source = node.child_by_field_name("source") if node.type == "export_statement" else None
        if source is not None and not any(each.type == "type" for each in node.children):
            clauses = [each for each in node.named_children if each.type == "export_clause"]
            specifiers = [specifier for clause in clauses for specifier in _parts(clause)]
            # `a as b` exports what the other file calls a.
            yield tuple(_text(each.child_by_field_name("name")) for each in specifiers), _string(source)


def static_value(node: Node, depth: int = 0) -> Json:
    """Return the JSON value that is written out; texts may be joined by `+`. Raises `NotStatic`."""
    if depth > MAX_DEPTH:
        raise NotStatic("The value is nested too deep.")
    if node.type in _TYPED and (inner := _parts(node)):
        return static_value(inner[0], depth + 1)
    if node.type == "array":
        return [static_value(each, depth + 1) for each in _parts(node)]
    if node.type == "object":
        return _object(node, depth + 1)
    if node.type in ("string", "template_string"):
        return _string(node)
    if node.type == "number":
        return _number(_text(node))
    if node.type in ("unary_expression", "binary_expression"):
        return _expression(node, depth)
    if node.type in _WORDS:
        return _WORDS[node.type]
    raise NotStatic("The value is computed.")


def _object(node: Node, depth: int) -> dict[str, Json]:
    fields = _fields(node)
    if len(fields) != len(_parts(node)):
        raise NotStatic("The object has methods, spreads, computed or repeated keys.")
    return {key: static_value(value, depth) for key, value in fields.items()}


def _fields(node: Node) -> dict[str, Node]:
    fields = {}
    for pair in _parts(node):
        key, value = pair.child_by_field_name("key"), _value(pair)
        if pair.type == "pair" and key is not None and key.type in _KEYS and value is not None:
            fields[_string(key) if key.type == "string" else _text(key)] = value
    return fields


def _expression(node: Node, depth: int) -> Json:
    """Return a negative number or joined texts."""
    operator, argument = node.child_by_field_name("operator"), node.child_by_field_name("argument")
    if _text(operator) == "-" and argument is not None and argument.type == "number":
        return -_number(_text(argument))
    parts = [static_value(each, depth + 1) for each in _join_chain(node)]
    if not all(isinstance(part, str) for part in parts):
        raise NotStatic("Only texts are joined.")
    return "".join(map(str, parts))


def _join_chain(node: Node) -> list[Node]:
    """Return what a chain of `+` joins; it nests to the left, once for each part."""
    parts: list[Node] = []
    current: Node | None = node
    while current is not None and current.type == "binary_expression":
        right = current.child_by_field_name("right")
        if _text(current.child_by_field_name("operator")) != "+" or right is None:
            raise NotStatic("The value is computed.")
        parts.append(right)
        current = current.child_by_field_name("left")
    if current is None or current.type == "unary_expression":
        raise NotStatic("The value is computed.")
    return [current, *reversed(parts)]


def _parts(node: Node) -> list[Node]:
    """Return what a node holds besides signs and comments."""
    return [each for each in node.named_children if each.type != "comment"]


def _value(node: Node) -> Node | None:
    return node.child_by_field_name("value")


def _text(node: Node | None) -> str:
    return (node.text or b"").decode() if node is not None else ""


def _string(node: Node) -> str:
    if any(each.type == "template_substitution" or each.is_error for each in node.named_children):
        raise NotStatic("The text has values in it.")
    return _decode(_text(node)[1:-1])


def _number(written: str) -> int | float:
    digits = written.replace("_", "").rstrip("n")
    try:
        return int(digits, 0)
    except ValueError:
        value = float(digits)
    if not isfinite(value):
        raise NotStatic(f"{digits} is too large.")
    return value


def _decode(written: str) -> str:
    if "\\" not in written:
        return written
    text = _ESCAPE.sub(_escape, written)
    # Characters beyond the first plane may be written as two escapes, which are one character together.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits is None:
        return _SHORT.get(match[4], match[4])
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF else "\ufffd"
