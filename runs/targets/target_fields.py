"""A target's entry as texts of a form, and back.

Both views describe one entry: fields that the form doesn't change keep their spelling, order and value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import yaml

from evaluators.model import Json
from runs.targets.entries import TargetEntry, find_reference
from runs.targets.providers.options import Options
from runs.targets.providers.registry import OPTIONS
from scenarios.formats.positions import PositionedDocument, Positions
from scenarios.formats.problems import ScenarioFileError
from scenarios.reading import read_yaml

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]*")
"""A variable's name in a field for a secret; with an underscore, which keys of services rarely have."""
MAIN: Mapping[str, tuple[str, ...]] = {
    "cli": ("command_template", "parser", "cwd", "read_folders", "healthcheck", "timeout_seconds"),
    "codex": ("model", "api_key", "base_url", "executable", "args", "env"),
    "claude_code": ("model", "api_key", "base_url", "executable", "args", "env"),
    "opencode": ("model", "api_key", "base_url", "executable", "args", "env"),
    **dict.fromkeys(
        ("gemini_cli", "qwen_code", "copilot_cli"),
        ("model", "api_key", "base_url", "executable", "args", "env"),
    ),
    "http": ("url", "api_key", "headers", "input_field", "output_field", "timeout_seconds"),
    "litellm": ("model", "base_url", "api_key", "temperature", "max_output_tokens"),
    "azure": ("resource_name", "deployment_name", "api_key", "version"),
    "anthropic": ("model", "api_key", "max_output_tokens", "thinking_budget"),
    "gemini": ("model", "api_key", "max_output_tokens"),
    "mock": ("response", "delay_ms", "exit_code", "trace"),
    "replay": ("path", "parser", "response", "exit_code"),
}
"""Fields that a kind's form shows first, by default its own; the others are under *More*."""


@dataclass(frozen=True)
class TargetField:
    """One field of a kind's form."""

    name: str
    widget: Literal["text", "number", "lines", "pairs", "yaml", "choice", "switch"]
    """`lines`: one item each; `pairs`: NAME=VALUE; `yaml`: any other structure."""
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_secret: bool = False
    is_main: bool = False
    default: str = ""

    def text(self, value: Json) -> str:
        """Return a value as the form shows it."""
        if value is None:
            return ""
        if self.is_secret and (name := find_reference(value)) and _VARIABLE.fullmatch(name):
            return name
        if isinstance(value, str):
            return value
        if (
            self.widget == "lines"
            and isinstance(value, list)
            and all(isinstance(each, str) for each in value)
        ):
            return "\n".join(value)
        if self.widget == "pairs" and isinstance(value, dict) and all(map(_is_plain, value.values())):
            return "\n".join(f"{name}={item}" for name, item in value.items())
        if isinstance(value, bool | int | float):
            return str(value).lower() if isinstance(value, bool) else str(value)
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).strip()

    def value(self, text: str) -> Json:
        """Return a text's value; what can't be read stays a text, which validation refuses at its field."""
        if self.is_secret and _VARIABLE.fullmatch(text.strip()):
            return f"${{{{ {text.strip()} }}}}"
        if find_reference(text):
            return text.strip()
        if self.widget == "lines":
            return [line.strip() for line in text.splitlines() if line.strip()]
        if self.widget == "pairs":
            return _pairs(text)
        if self.widget == "switch":
            return {"true": True, "false": False}.get(text, text)
        if self.widget == "yaml":
            return _structure(text)
        return _number(text) if self.widget == "number" else text


def fields_of(kind: str) -> tuple[TargetField, ...]:
    """Return the fields of a kind's form, the main ones first."""
    options = OPTIONS[kind]
    main = MAIN.get(kind) or tuple(name for name in options.model_fields if name not in Options.model_fields)
    others = [name for name in options.model_fields if name not in main and name not in options.unused_fields]
    return tuple(_field(options, name, is_main=name in main) for name in (*main, *others))


def texts_of(entry: Mapping[str, Json], fields: Sequence[TargetField]) -> dict[str, str]:
    """Return an entry's values as the form shows them."""
    values = _read(entry).fields()
    return {field.name: field.text(values.get(field.name)) for field in fields}


def entry_of(
    texts: Mapping[str, str], fields: Sequence[TargetField], *, name: str, kind: str, base: Mapping[str, Json]
) -> dict[str, Json]:
    """Return the entry that a form describes, starting from `base`, the stored one or an empty one."""
    read = _read(base)
    written = str(base.get("provider", "")) if read.kind == kind else kind
    entry: dict[str, Json] = {"name": name, "provider": written}
    entry |= {key: value for key, value in base.items() if key not in ("name", "provider")}
    for field in fields:
        text = texts.get(field.name, "").replace("\r\n", "\n")
        key = read.origin.get(field.name, field.name)
        if field.text(base.get(key)) == text:
            continue
        if text.strip():
            entry[key] = field.value(text)
        else:
            entry.pop(key, None)
    return entry


def dump(entry: Mapping[str, Json]) -> str:
    """Return an entry as YAML."""
    return yaml.safe_dump(dict(entry), sort_keys=False, allow_unicode=True, width=100)


def load(text: str) -> Json:
    """Return what YAML says, as in a targets file. Raises `ScenarioFileError`."""
    return read_yaml("target", text.encode()).value


def _read(entry: Mapping[str, Json]) -> TargetEntry:
    return TargetEntry(PositionedDocument("target", dict(entry), Positions()), (), dict(entry))


def _field(options: type[Options], name: str, *, is_main: bool) -> TargetField:
    info = options.model_fields[name]
    default = info.get_default(call_default_factory=True) if not info.is_required() else None
    shown = "" if default in (None, (), {}, False, "") else str(default)
    widget, choices = _widget(info.annotation)
    secret = name in options.secret_fields
    return TargetField(name, widget, choices, info.is_required(), secret, is_main, shown)


def _widget(annotation: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the widget for values of a type, and its choices."""
    if hasattr(annotation, "__metadata__"):
        return _widget(annotation.__origin__)
    origin, parts = get_origin(annotation), get_args(annotation)
    if NoneType in parts:
        kinds = [each for each in parts if each is not NoneType]
        return _widget(kinds[0]) if len(kinds) == 1 else ("yaml", ())
    if origin is Literal:
        return "choice", tuple(map(str, parts))
    if origin is tuple and _widget(parts[0])[0] == "text":
        return "lines", ()
    if origin is dict and parts[1] is str:
        return "pairs", ()
    plain = {
        bool: ("switch", ("true", "false")),
        str: ("text", ()),
        int: ("number", ()),
        float: ("number", ()),
    }
    return plain.get(annotation, ("yaml", ()))


def _is_plain(value: Json) -> bool:
    return isinstance(value, str) and "\n" not in value


def _pairs(text: str) -> Json:
    pairs = [line.strip().partition("=") for line in text.splitlines() if line.strip()]
    if any(not sign or not name.strip() for name, sign, _ in pairs):
        return text
    return {name.strip(): value.strip() for name, _, value in pairs}


def _structure(text: str) -> Json:
    try:
        return load(text)
    except ScenarioFileError:
        return text


def _number(text: str) -> Json:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
