"""Keep secrets out of stored, shown and sent texts.

Known secret values are masked before anything is stored. Texts that only look like secrets are redacted by
pattern when they are shown, exported or sent to a judge. RE2 keeps every pattern linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import re2

from evaluators.model import Json

REDACTED = "[REDACTED]"
SHORTEST_VALUE = 6
"""Characters; masking shorter values would hide ordinary words."""

_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOKEN_NAME = r"api[_-]?key|apikey|token"  # noqa: S105 the name of a field, not a password
_PASSWORD_NAME = r"passwords?|passwd|passphrase|(?:client[_-])?secret(?:[_-]access)?(?:[_-]key)?"  # noqa: S105

_PATTERNS = (
    (
        r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\z)",
        rf"\1{REDACTED}",
    ),
    (r"(?i)\b(sk-)[a-z0-9_-]{20,}", rf"\1{REDACTED}"),
    (r"\b((?:sk|rk|pk)_(?:live|test)_)[A-Za-z0-9]{10,}", rf"\1{REDACTED}"),
    (
        r"\b(gh[pousr]_|github_pat_|glpat-|hf_|npm_|pypi-|xox[abeprs]-|xapp-)[A-Za-z0-9_-]{10,}",
        rf"\1{REDACTED}",
    ),
    (r"\b(A[KS]IA)[0-9A-Z]{16}\b", rf"\1{REDACTED}"),
    (r"\b(AIza)[0-9A-Za-z_-]{30,}", rf"\1{REDACTED}"),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", REDACTED),
    (r"(?i)Bearer\s+[A-Za-z0-9\-._~+/]+=*", f"Bearer {REDACTED}"),
    (r"(://[^/\s:@'\"]*:)[^/\s@'\"]+@", rf"\1{REDACTED}@"),
    (rf'(?i)((?:{_TOKEN_NAME}|{_PASSWORD_NAME})"\s*:\s*)"(?:[^"\\]|\\.)*"', rf'\1"{REDACTED}"'),
    (rf"(?i)((?:{_TOKEN_NAME}|{_PASSWORD_NAME})'\s*:\s*)'[^']*'", rf"\1'{REDACTED}'"),
    (rf"(?i)({_TOKEN_NAME}):\s*(?:{_QUOTED}|['\"]?[A-Za-z0-9\-._~+/=]+['\"]?)", rf"\1: {REDACTED}"),
    (rf"(?i)({_PASSWORD_NAME}):\s*(?:{_QUOTED}|['\"]?[^\s'\"]+['\"]?)", rf"\1: {REDACTED}"),
    (rf"(?i)({_TOKEN_NAME}|{_PASSWORD_NAME})=(?:{_QUOTED}|[^\s'\"&;]+)", rf"\1={REDACTED}"),
    (r"(?i)\b[A-Z0-9._%+-]+@[A-Z0-9.-]+\.[A-Z]{2,}\b", "[REDACTED_EMAIL]"),
    (r"(/home/|/Users/)[^/\s'\":;,)\\]+", r"\1[REDACTED_USER]"),
    (r"([A-Za-z]:\\+Users\\+)[^\\\s'\":;,)]+", r"\1[REDACTED_USER]"),
)
_RULES = tuple((re2.compile(pattern), replacement) for pattern, replacement in _PATTERNS)
_ANY = re2.compile("|".join(f"(?:{pattern})" for pattern, _ in _PATTERNS))


def redact_patterns(text: str) -> str:
    """Redact everything that looks like a key, password, e-mail address or home folder."""
    if not _ANY.search(text):
        return text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def redact_json(value: Json) -> Json:
    """Return a JSON value with its texts redacted by pattern; keys stay."""
    if isinstance(value, str):
        return redact_patterns(value)
    if isinstance(value, dict):
        return {key: redact_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_json(item) for item in value]
    return value


def mask_values(text: str, values: Iterable[str]) -> str:
    """Return the text with these values masked, in plain and JSON-escaped form, longest first.

    Values shorter than `SHORTEST_VALUE` are not masked.
    """
    known = _maskable(values)
    return re.sub("|".join(map(re.escape, known)), REDACTED, text) if known else text


def mask_values_in_bytes(raw: bytes, values: Iterable[str]) -> bytes:
    """Return bytes with these values masked, as `mask_values` does for text."""
    known = [value.encode() for value in _maskable(values)]
    return re.sub(b"|".join(map(re.escape, known)), REDACTED.encode(), raw) if known else raw


def _maskable(values: Iterable[str]) -> list[str]:
    long = {value for value in values if len(value) >= SHORTEST_VALUE}
    forms = long | {json.dumps(value)[1:-1] for value in long}
    forms |= {json.dumps(value, ensure_ascii=False)[1:-1] for value in long}
    return sorted(forms, key=lambda form: (-len(form), form))
