"""What evaluators refer to: prompts, scripts and the folders these run in."""

from __future__ import annotations

import posixpath
import re
import shlex

from evaluators.judges.llm_judge_prompt import shows_answer
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.messages import file_text
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem

_FILE_NAME = re.compile(r"[^\s{}]+\.(?:md|txt|prompt|jinja|j2|tmpl)")
_SCRIPT = re.compile(r"[\w./-]+\.(?:py|js|mjs|cjs|ts|sh|rb|pl)")


def read_prompt(
    value: str | None, context: EvalFileContext, at: Location, *, needs_answer: bool = True
) -> tuple[str, str, list[Problem]]:
    """Return the template of a judge and the file it comes from: the text of a file, or the value itself."""
    if value is None:
        return "", "", []
    path = context.find_file(value) if len(value) < 500 and "\n" not in value else None
    if path is None:
        if _FILE_NAME.fullmatch(value.strip()):
            return "", "", [context.missing(at, value)]
        return value, "", _without_answer(value, context, at) if needs_answer else []
    context.used.add(path)
    text, problems = file_text(context, path, at)
    if needs_answer:
        problems += _without_answer(text, context, at)
    return text, path, problems


def read_cwd(value: str | None, context: EvalFileContext, at: Location) -> tuple[str, list[Problem]]:
    """Return the folder of the upload in which a script runs; the eval file's own where none is named."""
    if value is None or value.strip() in ("", "."):
        return context.folder, []
    folder = context.find_folder(value)
    if folder is None:
        return "", [context.missing(at, value)]
    context.used.add(folder)
    return folder, []


def script_lints(script: str, cwd: str, context: EvalFileContext, at: Location) -> list[Problem]:
    """Return a lint for each program file that a command names and the upload lacks."""
    return [
        context.document.problem(
            at,
            f"The command names '{name}', which is not in the upload's folder '{cwd or '.'}'.",
            fix="Upload it with the eval file, or name it from that folder.",
            id="format/missing-script",
            lint=True,
        )
        for name in script_files(script)
        if posixpath.normpath(posixpath.join(cwd, name)) not in context.upload.files
    ]


def script_files(script: str) -> list[str]:
    """Return the program files that a command names by a relative path."""
    try:
        words = shlex.split(script)
    except ValueError:
        words = script.split()
    return [word for word in words if _SCRIPT.fullmatch(word) and not word.startswith("/")]


def _without_answer(template: str, context: EvalFileContext, at: Location) -> list[Problem]:
    if shows_answer(template):
        return []
    what = "The judge's prompt has no place for the answer, so the case and the answer follow it."
    fix = "Write {{candidate_answer}} where the answer belongs."
    return [context.document.problem(at, what, fix=fix, id="format/judge-without-answer", lint=True)]
