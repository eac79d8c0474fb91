"""Find files of a skill that say word for word what its cases are judged by."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence

from evalhub.lib.numbers import counted
from evaluators.transcripts.reading import decode_text
from scenarios.formats.agent_skills.case_models import EXPECTED
from scenarios.formats.agent_skills.skill_contents import FILE
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.problems import Problem
from scenarios.formats.text_decoding import MAX_BYTES
from scenarios.spec import ScenarioSpec

SHORTEST = 40
"""Characters from which on an assertion or expected output isn't in a file by chance."""


def answers_in_files(files: Sequence[FixtureFile], specs: Sequence[ScenarioSpec]) -> Iterator[Problem]:
    """Yield a lint for each file but SKILL.md with an assertion or expected output of a case, however it is wrapped."""
    answers = {_join(text): (spec.key, what) for spec in specs for what, text in _answers(spec)}
    marks = {answer: _mark(answer) for answer in answers}
    for file in files:
        if posixpath.basename(file.path) == FILE or len(file.content) > MAX_BYTES or b"\0" in file.content:
            continue
        text = decode_text(file.content, "replace")
        joined = _join(text)
        words = {"", *joined.split(" ")}
        found = [
            answer
            for answer in answers
            if marks[answer] in words and any(form in joined for form in _forms(answer, file.path))
        ]
        if found:
            key, what = answers[found[0]]
            more = f", and {counted(len(found) - 1, 'more text')} like it" if found[1:] else ""
            sentence = (
                f"The file holds the {what} of case '{key}' word for word{more}: "
                "an agent with the skill can read it."
            )
            fix = "Reword it, or move the file into evals/, which no agent gets."
            line = _line_of(text, found[0], file.path)
            yield Problem(file.path, line, "", sentence, fix, "format/answer-in-skill", lint=True)


def _answers(spec: ScenarioSpec) -> Iterator[tuple[str, str]]:
    judge = spec.criteria.judge
    if judge is None:
        return
    texts = [
        ("expected output" if one.id == EXPECTED else "assertion", one.description)
        for one in judge.rubric.criteria
    ]
    yield from (
        (what, text)
        for what, text in [("expected output", judge.rubric.expected), *texts]
        if len(_join(text)) >= SHORTEST
    )


def _join(text: str) -> str:
    return " ".join(text.split())


def _mark(answer: str) -> str:
    """Return the longest word that stands between spaces wherever the text does; empty without one."""
    words = (word for word in answer.split(" ")[1:-1] if word.isascii() and word.isalnum())
    return max(words, key=len, default="")


def _forms(answer: str, path: str) -> list[str]:
    """Return a text as a file may have it: in JSON with escapes."""
    if not path.lower().endswith((".json", ".jsonl")):
        return [answer]
    return [answer, json.dumps(answer)[1:-1], json.dumps(answer, ensure_ascii=False)[1:-1]]


def _line_of(text: str, answer: str, path: str) -> int:
    for form in _forms(answer, path):
        if match := re.search(r"\s+".join(map(re.escape, form.split())), text):
            return text.count("\n", 0, match.start()) + 1
    return 1
