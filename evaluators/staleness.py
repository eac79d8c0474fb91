"""Whether eval files still fit the tools they were generated for (tool-forge eval runner, Staleness Checks)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from evaluators.js_text import string_of
from evaluators.model import Json

HASH_DIGITS = 12
GROWTH = 1.5
"""A registry that has grown beyond this factor may hold tools that the evals do not know."""


class RegisteredTool(Struct, frozen=True):
    """What a registry says of one tool."""

    description: str | None = None
    """None where it cannot be read without running the tool's code."""
    version: str | None = None
    input_schema: Json = None


class Registry(Struct, frozen=True):
    """The tools of a project as they are now."""

    size: int
    """Tools in use; one with the status `removed` is not counted."""
    tools: Mapping[str, RegisteredTool]


class Staleness(Struct, frozen=True):
    """What the checks found. They warn and never skip."""

    warnings: tuple[str, ...] = ()
    stale: bool = False
    """The description is another one; growth and versions only warn."""
    generated_hash: str | None = None
    current_hash: str | None = None


def description_hash(description: str) -> str:
    """Return the first 12 hex digits of the SHA-256 of a tool's description."""
    return sha256(description.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def check_staleness(metadata: Mapping[str, Json] | None, registry: Registry | None) -> Staleness:
    """Compare an eval file's metadata with the registry; without metadata nothing is checked.

    A key that the metadata leaves out or blank, or that still holds a template's `{{…}}`, is not compared.
    """
    if not metadata:
        return Staleness()
    told = {key: value for key, value in metadata.items() if not _is_open(value)}
    name = told.get("toolName")
    if registry is None:
        return Staleness((_no_registry(name),))
    tool = registry.tools.get(name) if isinstance(name, str) else None
    generated, current = _hashes(told, tool)
    stale = generated is not None and current is not None and generated != current
    return Staleness(tuple(_warnings(told, registry, tool)), stale, generated, current)


def is_placeholder(value: Json) -> bool:
    """Tell a value that a template left to be filled in."""
    return isinstance(value, str) and value.startswith("{{") and value.endswith("}}")


def _is_open(value: Json) -> bool:
    return is_placeholder(value) or (isinstance(value, str) and not value.strip())


def _no_registry(name: Json) -> str:
    tool = f" of {name}" if isinstance(name, str) else ""
    return f"There is no tool registry, so the description hash, version and registry size{tool} were not checked."


def _hashes(told: Mapping[str, Json], tool: RegisteredTool | None) -> tuple[str | None, str | None]:
    generated = told.get("descriptionHash")
    current = None if tool is None or tool.description is None else description_hash(tool.description)
    return generated if isinstance(generated, str) else None, current


def _warnings(told: Mapping[str, Json], registry: Registry, tool: RegisteredTool | None) -> Iterator[str]:
    name = told.get("toolName")
    if tool is None and isinstance(name, str):
        yield f"Tool {name} is not in the registry, so its description and version were not checked."
    if tool is not None:
        yield from _description(told, tool)
    yield from _size(told, registry)
    if tool is not None:
        yield from _version(told, tool)


def _description(told: Mapping[str, Json], tool: RegisteredTool) -> Iterator[str]:
    name = told["toolName"]
    generated, current = _hashes(told, tool)
    if generated is not None and current is None:
        yield f"The description of {name} is not statically readable, so its hash was not checked."
    elif generated is not None and generated != current:
        yield (
            f"Evals for {name} generated against description hash {generated}, current is {current}. "
            "Results may not reflect current routing contract."
        )


def _size(told: Mapping[str, Json], registry: Registry) -> Iterator[str]:
    size = told.get("registrySize")
    if isinstance(size, int | float) and not isinstance(size, bool) and registry.size > size * GROWTH:
        yield (
            f"Registry has grown from {string_of(size)} to {registry.size} tools. "
            "Labeled evals may have under-specified toolsAcceptable sets."
        )


def _version(told: Mapping[str, Json], tool: RegisteredTool) -> Iterator[str]:
    generated = told.get("toolVersion")
    if isinstance(generated, str) and tool.version and _major(generated) != _major(tool.version):
        yield (
            f"Tool {told['toolName']} is version {tool.version}, evals were generated for {generated}. "
            "Schema may have changed."
        )


def _major(version: str) -> str:
    return version.strip().removeprefix("v").split(".")[0]
