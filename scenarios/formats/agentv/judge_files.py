"""Find the prompts, scripts and working directories of evaluators."""

from __future__ import annotations

import posixpath
import re
import shlex

from evaluators.grading.judges.llm_judge_prompt import shows_answer
from scenarios.formats.agentv.eval_file_context import EvalFileContext
from scenarios.formats.agentv.messages import file_text
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem

FILE_PREFIX = "file://"
_FILE_NAME = re.compile(r"[^\s{}]+\.(?:md|txt|prompt|jinja|j2|tmpl)")
_SCRIPT = re.compile(r"[\w./-]+\.(?:py|js|mjs|cjs|ts|sh|rb|pl)")


def read_prompt(
    value: str, context: EvalFileContext, at: Location, *, needs_answer: bool = True
) -> tuple[str, str, list[Problem]]:
    """Return a judge's template and its file: the text of the named file, or the value itself."""
    if not value:
        return "", "", []
    named = value.startswith(FILE_PREFIX)
    value = value.removeprefix(FILE_PREFIX)
    path = context.find_file(value) if len(value) < 500 and "\n" not in value else None
    if path is None:
        if named or _FILE_NAME.fullmatch(value.strip()):
            return "", "", [context.missing(at, value)]
        return value, "", _without_answer(value, context, at) if needs_answer else []
    context.used.add(path)
    text, problems = file_text(context, path, at)
    if needs_answer:
        problems += _without_answer(text, context, at)
    return text, path, problems


def read_cwd(value: str, context: EvalFileContext, at: Location) -> tuple[str, list[Problem]]:
    """Return a script's working directory in the upload; the eval file's folder by default."""
    if value.strip() in ("", "."):
        return context.folder, []
    folder = context.find_folder(value)
    if folder is None:
        return "", [context.missing(at, value)]
    context.used.add(folder)
    return folder, []


def script_lints(script: str, cwd: str, context: EvalFileContext, at: Location) -> list[Problem]:
    """Return a lint for each script of a command that is missing in the upload."""
    return [
        context.document.problem(
            at,
            f"The script '{name}' is not in the upload's folder '{cwd or '.'}'.",
            fix="Upload it with the eval file, or name it relative to that folder.",
            id="format/missing-script",
            lint=True,
        )
        for name in script_files(script)
        if posixpath.normpath(posixpath.join(cwd, name)) not in context.upload.files
    ]


def script_files(script: str) -> list[str]:
    """Return the scripts that a command names by relative path."""
    try:
        words = shlex.split(script)
    except ValueError:
        words = script.split()
    return [word for word in words if _SCRIPT.fullmatch(word) and not word.startswith("/")]


def _without_answer(template: str, context: EvalFileContext, at: Location) -> list[Problem]:
    if shows_answer(template):
        return []
    what = "The judge's prompt does not include the answer, so case and answer are appended."
    fix = "Add {{candidate_answer}} to the prompt."
    return [context.document.problem(at, what, fix=fix, id="format/judge-without-answer", lint=True)]
