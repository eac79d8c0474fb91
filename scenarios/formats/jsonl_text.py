"""JSON lines, each value with the line it stands on."""

from __future__ import annotations

from dataclasses import replace

from evaluators.model import Json
from scenarios.formats.json_text import read_json
from scenarios.formats.positions import Document, Location, Positions, where
from scenarios.formats.problems import Problem, ScenarioFileError
from scenarios.formats.text import decode


def read_jsonl(content: bytes, file: str) -> Document:
    """Decode JSON lines as a list. Raises `ScenarioFileError` with every line that is not JSON."""
    values: list[Json] = []
    lines: dict[Location, int] = {(): 1}
    problems: list[Problem] = []
    for number, text in enumerate(decode(content, file).splitlines(), start=1):
        if not text.strip():
            continue
        location: Location = (len(values),)
        try:
            values.append(read_json(text.encode(), file).value)
        except ScenarioFileError as error:
            problems += [replace(problem, line=number, where=where(location)) for problem in error.problems]
            values.append(None)
        lines[location] = number
    if problems:
        raise ScenarioFileError(problems)
    return Document(file=file, value=values, positions=Positions(lines))
