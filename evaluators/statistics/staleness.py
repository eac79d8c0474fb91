"""Check whether eval files still match the tools they were generated for (tool-forge eval runner, Staleness Checks)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from evaluators.model import Json
from evaluators.patterns import string_of

HASH_DIGITS = 12


class RegisteredTool(Struct, frozen=True):
    """One tool of a registry."""

    description: str | None = None
    """None if reading it would need to run the tool's code."""
    version: str | None = None
    input_schema: Json = None


class Registry(Struct, frozen=True, omit_defaults=True):
    """The current tools of a project."""

    size: int
    """The number of tools, without those with status `removed`."""
    tools: Mapping[str, RegisteredTool]
    warnings: tuple[str, ...] = ()
    """What could not be read."""


class Staleness(Struct, frozen=True):
    """The result of the checks. They warn and never skip a case."""

    warnings: tuple[str, ...] = ()
    stale: bool = False
    """Whether the description changed; growth and versions only warn."""
    generated_hash: str | None = None
    current_hash: str | None = None


def description_hash(description: str) -> str:
    """Return the first 12 hex digits of the SHA-256 of a tool's description."""
    return sha256(description.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def check_staleness(metadata: Mapping[str, Json] | None, registry: Registry | None) -> Staleness:
    """Compare an eval file's metadata with the registry; check nothing without metadata.

    Missing and blank keys, and unfilled `{{…}}` placeholders of a template, are not compared.
    """
    if not metadata:
        return Staleness()
    filled = {
        key: value
        for key, value in metadata.items()
        if not (is_placeholder(value) or (isinstance(value, str) and not value.strip()))
    }
    name = filled.get("toolName")
    if registry is None:
        return Staleness((_no_registry(name),))
    tool = registry.tools.get(name) if isinstance(name, str) else None
    generated, current = _hashes(filled, tool)
    stale = generated is not None and current is not None and generated != current
    return Staleness(tuple(_warnings(filled, registry, tool)), stale, generated, current)


def is_placeholder(value: Json) -> bool:
    """Return whether a value is an unfilled template placeholder."""
    return isinstance(value, str) and value.startswith("{{") and value.endswith("}}")


def _no_registry(name: Json) -> str:
    tool = f" of {name}" if isinstance(name, str) else ""
    return f"There is no tool registry, so the description hash, version and registry size{tool} were not checked."


def _hashes(filled: Mapping[str, Json], tool: RegisteredTool | None) -> tuple[str | None, str | None]:
    generated = filled.get("descriptionHash")
    current = None if tool is None or tool.description is None else description_hash(tool.description)
    return generated if isinstance(generated, str) else None, current


def _warnings(filled: Mapping[str, Json], registry: Registry, tool: RegisteredTool | None) -> Iterator[str]:
    name = filled.get("toolName")
    if tool is None and isinstance(name, str):
        yield f"Tool {name} is not in the registry, so its description and version were not checked."
    if tool is not None:
        yield from _description(filled, tool)
    size = filled.get("registrySize")
    # Growth of a registry that triggers a warning, because the evals may not cover new tools.
    if isinstance(size, int | float) and not isinstance(size, bool) and registry.size > size * 1.5:
        yield (
            f"Registry has grown from {string_of(size)} to {registry.size} tools. "
            "Labeled evals may have under-specified toolsAcceptable sets."
        )
    if tool is not None:
        generated = filled.get("toolVersion")
        if isinstance(generated, str) and tool.version and _major(generated) != _major(tool.version):
            yield (
                f"Tool {filled['toolName']} is version {tool.version}, evals were generated for {generated}. "
                "Schema may have changed."
            )


def _description(filled: Mapping[str, Json], tool: RegisteredTool) -> Iterator[str]:
    name = filled["toolName"]
    generated, current = _hashes(filled, tool)
    if generated is not None and current is None:
        yield f"The description of {name} is not statically readable, so its hash was not checked."
    elif generated is not None and generated != current:
        yield (
            f"Evals for {name} generated against description hash {generated}, current is {current}. "
            "Results may not reflect current routing contract."
        )


def _major(version: str) -> str:
    return version.strip().removeprefix("v").split(".")[0]
