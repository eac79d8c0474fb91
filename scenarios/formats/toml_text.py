"""Read TOML with the line of every table and key, for the settings of llm-tool-test."""

from __future__ import annotations

import re

from scenarios.formats.positions import Location, PositionedDocument, Positions
from scenarios.formats.text_decoding import MAX_DEPTH, decode_document, decoding_error, too_deep

# Nothing is tried again: on a line of blanks that would take cubic time.
_TABLE = re.compile(r"\s*+\[++([^\]\n]++)\]")
_KEY = re.compile(r"""\s*([A-Za-z0-9_.-]+|"[^"\n]*"|'[^'\n]*')\s*=""")
_PART = r"""(?<![A-Za-z0-9_\\-])(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
# For each key, tomllib walks all parts of its own and its table's name.
_DEEP = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}")


def read_toml(content: bytes, file: str) -> PositionedDocument:
    """Decode TOML. Raises `ScenarioFileError` with the line of the error."""
    # Imported here because most suites have no TOML.
    import tomllib

    text = decode_document(content, file)
    if deep := _DEEP.search(text):
        raise too_deep(file, text.count("\n", 0, deep.start()) + 1)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        raise decoding_error(
            file,
            int(line[1]) if line else 1,
            "This is not TOML: " + str(error).rstrip(".") + ".",
            fix="Fix the syntax there.",
            id="format/not-toml",
        ) from error
    return PositionedDocument(file=file, value=value, positions=Positions(_lines(text)))


def _lines(text: str) -> dict[Location, int]:
    """Return the line of each table and key; multi-line values have the line of their key."""
    table: Location = ()
    lines: dict[Location, int] = {(): 1}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            table = _parts(match[1])
            lines.setdefault(table, number)
        elif match := _KEY.match(line):
            lines.setdefault((*table, *_parts(match[1])), number)
    return lines


def _parts(name: str) -> Location:
    return tuple(part.strip().strip("\"'") for part in name.split("."))
