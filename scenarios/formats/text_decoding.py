"""Decode uploaded bytes to text, within the limits of all formats."""

from __future__ import annotations

from evaluators.transcripts.reading import decode_text
from scenarios.formats.problems import Problem, ScenarioFileError

MAX_BYTES = 2 * 1024 * 1024
"""The largest document that is decoded; fixture files may be larger."""
EMPTY = "format/empty-file"
"""The problem of a file without a value, which is none beside other files."""
MAX_DEPTH = 40
"""The deepest nesting of lists and mappings; libyaml's only limit is the stack."""


def decoding_error(file: str, line: int, what: str, *, fix: str, id: str) -> ScenarioFileError:
    """Return the error for a file that cannot be decoded."""
    return ScenarioFileError([Problem(file=file, line=line, where="", what=what, fix=fix, id=id)])


def decode_document(content: bytes, file: str) -> str:
    """Return the text of a document. Raises `ScenarioFileError` if it is empty, too large or not UTF-8 or UTF-16."""
    if len(content) > MAX_BYTES:
        raise decoding_error(
            file,
            1,
            f"The file has {len(content):,} bytes; the limit is {MAX_BYTES:,}.",
            fix="Split it into several files, or move large inputs into a fixture.",
            id="format/too-large",
        )
    try:
        text = decode_text(content)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise decoding_error(
            file,
            line,
            "The file is not UTF-8 or UTF-16 text.",
            fix="Save it as UTF-8.",
            id="format/not-text",
        ) from error
    if not text.strip():
        raise empty(file)
    return text


def empty(file: str) -> ScenarioFileError:
    """Return the error for an empty file."""
    return decoding_error(
        file,
        1,
        "The file is empty.",
        fix="Write a scenario into it, or remove the file.",
        id=EMPTY,
    )


def too_deep(file: str, line: int) -> ScenarioFileError:
    """Return the error for nesting that could exhaust the stack."""
    return decoding_error(
        file,
        line,
        f"Lists and mappings are nested more than {MAX_DEPTH} deep.",
        fix="Flatten the document.",
        id="format/too-deep",
    )


def bad_character(file: str, line: int) -> ScenarioFileError:
    """Return the error for a character that databases and terminals reject."""
    return decoding_error(
        file,
        line,
        "The text contains a NUL or half a surrogate pair.",
        fix="Remove the character; put binary content into a fixture.",
        id="format/bad-character",
    )


def duplicate_key(file: str, line: int, at: str, key: str) -> Problem:
    """Return the problem of a repeated key."""
    return Problem(
        file=file,
        line=line,
        where=at,
        what=f"Duplicate key '{key}' in this mapping.",
        fix="Remove one of them.",
        id="format/duplicate-key",
    )
