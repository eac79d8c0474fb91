"""Find credentials written in files; secrets are never stored."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaluators.model import Json
from scenarios.formats.parsed import Location, PositionedDocument, Problem

_REFERENCE = re.compile(r"\$\{\{\s*\w+\s*\}\}|\$\{\w+\}")
_NAME = re.compile(
    r"(?:^|[_.\-])(?:api[_\-]?key|key|apikey|token|secret|password|passwd|passphrase|credentials?|auth|authorization)"
    r"(?=$|[_.\-])",
    re.IGNORECASE,
)
_REFERENCE_NAME = re.compile(r"[_.\-](?:file|path|dir|folder|name|url|id)$", re.IGNORECASE)
"""Names with this ending refer to a secret and do not contain it."""
_VALUE = re.compile(
    r"\bsk-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w\-]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w\-]{35}|\bhf_[A-Za-z0-9]{20,}"
    r"|\beyJ[\w\-]{10,}\.[\w\-]{10,}\.[\w\-]{5,}|-----BEGIN [A-Z ]*PRIVATE KEY-----|(?i:\bbearer\s+[\w\-.~+/]{8,})"
)


def is_credential(name: str, value: str) -> bool:
    """Return whether a named value is a literal secret, not a reference such as `${VAR}`."""
    literal = _REFERENCE.sub("", value)
    if _VALUE.search(literal):
        return True
    named = _NAME.search(name) is not None and _REFERENCE_NAME.search(name) is None
    return named and literal == value and value.strip() != ""


def secret_problems(document: PositionedDocument) -> list[Problem]:
    """Return one problem for each text that is a credential by its key or its pattern."""
    return [
        document.problem(
            at,
            f"'{name}' looks like a credential. Secrets are never stored.",
            fix=f"Write {name}: ${{{{ {name.upper().replace('-', '_')} }}}} and set the variable on the worker.",
            id="format/literal-secret",
        )
        for at, name, text in _texts(document.value, (), "")
        if is_credential(name, text)
    ]


def _texts(value: Json, at: Location, name: str) -> Iterator[tuple[Location, str, str]]:
    """Yield every text with its nearest key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*at, key), key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*at, index), name)
    elif isinstance(value, str):
        yield at, name, value
