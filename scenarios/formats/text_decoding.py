"""From the bytes of an upload to text, within limits that hold for every format."""

from __future__ import annotations

from scenarios.formats.problems import Problem, ScenarioFileError

MAX_BYTES = 2 * 1024 * 1024
"""Largest document that is decoded; files of a fixture may be larger."""
MAX_DEPTH = 40
"""Lists and mappings inside each other; libyaml's own limit is the size of the stack."""


def refuse(file: str, line: int, what: str, *, fix: str, id: str) -> ScenarioFileError:
    """Return the error for a file that cannot be decoded at all."""
    return ScenarioFileError([Problem(file=file, line=line, where="", what=what, fix=fix, id=id)])


def decode(content: bytes, file: str) -> str:
    """Return the text of a document. Raises `ScenarioFileError` when empty, too large or not UTF-8."""
    if len(content) > MAX_BYTES:
        raise refuse(
            file,
            1,
            f"The file has {len(content):,} bytes; at most {MAX_BYTES:,} are read.",
            fix="Split it into several files, or move large inputs into a fixture.",
            id="format/too-large",
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise refuse(
            file, line, "The file is not UTF-8 text.", fix="Save it as UTF-8.", id="format/not-text"
        ) from error
    if not text.strip():
        raise empty(file)
    return text


def empty(file: str) -> ScenarioFileError:
    """Return the error for a file without content."""
    return refuse(
        file, 1, "The file is empty.", fix="Write a scenario into it or leave it out.", id="format/empty-file"
    )


def too_deep(file: str, line: int) -> ScenarioFileError:
    """Return the error for nesting that no scenario needs and that could exhaust the stack."""
    return refuse(
        file,
        line,
        f"Lists and mappings are nested more than {MAX_DEPTH} deep.",
        fix="Flatten the document.",
        id="format/too-deep",
    )


def bad_character(file: str, line: int) -> ScenarioFileError:
    """Return the error for a character that databases and terminals do not take."""
    return refuse(
        file,
        line,
        "The text holds a NUL or half a surrogate pair.",
        fix="Remove the character; binary content belongs in a fixture.",
        id="format/bad-character",
    )


def duplicate_key(file: str, line: int, at: str, key: str) -> Problem:
    """Return the problem of a key that would silently hide an earlier one."""
    return Problem(
        file=file,
        line=line,
        where=at,
        what=f"The key '{key}' stands twice in the same mapping.",
        fix="Keep one of the two.",
        id="format/duplicate-key",
    )
