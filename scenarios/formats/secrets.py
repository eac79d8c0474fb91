"""Finds credentials that are written out in a file; secrets are never stored."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"\$\{\{\s*\w+\s*\}\}|\$\{\w+\}")
_NAME = re.compile(
    r"(?:^|[_.\-])(?:api[_\-]?key|key|apikey|token|secret|password|passwd|passphrase|credentials?|auth|authorization)"
    r"(?=$|[_.\-])",
    re.IGNORECASE,
)
_PLACE = re.compile(r"[_.\-](?:file|path|dir|folder|name|url|id)$", re.IGNORECASE)
"""A name with this ending says where a secret is, and holds none."""
_VALUE = re.compile(
    r"\bsk-[A-Za-z0-9_\-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w\-]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9\-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w\-]{35}|\bhf_[A-Za-z0-9]{20,}"
    r"|\beyJ[\w\-]{10,}\.[\w\-]{10,}\.[\w\-]{5,}|-----BEGIN [A-Z ]*PRIVATE KEY-----|(?i:\bbearer\s+[\w\-.~+/]{8,})"
)


def is_credential(name: str, value: str) -> bool:
    """Tell whether a named value is a secret written out, and not a reference such as `${VAR}`."""
    literal = _REFERENCE.sub("", value)
    if _VALUE.search(literal):
        return True
    named = _NAME.search(name) is not None and _PLACE.search(name) is None
    return named and literal == value and value.strip() != ""
