"""`grade`: grade captured evidence without storing anything."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from pydantic import ValidationError

from evaluators.transcripts.reading import decode_text
from runs.db.disk import CannotStore
from runs.engine.grading.grade import Grading, grade_in_workspace
from runs.errors import ProviderError, RequestError
from runs.exchange.exports.console import evaluator_findings
from runs.sandbox.worker_settings import containment
from scenarios.commands import FAILED, EvalhubCommand, Refused, Result, read_bytes

SIGNS = {True: "✓", False: "✗", None: "–"}


class Command(EvalhubCommand):
    help = "Grade captured evidence against a scenario and print every score; nothing is stored."
    examples = (
        "evidence.json",
        "evidence.json --json",
    )

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="the request as JSON (see docs/command-line.md)")

    def work(self, options: dict[str, Any]) -> Result:
        request = _request(options["file"], read_bytes(options["file"], "the request"))
        try:
            graded = grade_in_workspace(request, settings.WORK_DIR, containment())
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error
        except (ProviderError, CannotStore) as error:
            raise Refused(str(error), id=f"grade/{error.kind}") from error
        return Result(_text(graded), graded, 0 if graded["outcome"] == "pass" else FAILED)


def _request(path: str, content: bytes) -> Grading:
    try:
        return Grading.model_validate_json(decode_text(content, "replace"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise Refused(
            f"{path}: {where}: {first['msg'].rstrip('.')}. Fix the request.", id="grade/request"
        ) from error


def _text(graded: dict[str, Any]) -> str:
    lines = [f"{graded['scenario']}: {graded['outcome']}"]
    for score in graded["scores"]:
        value = "not measured" if score["value"] is None else f"{score['value']:g}"
        findings = list(evaluator_findings(score)) if score.get("verdict") else []
        message = f"  {score['message']}" if score["message"] and not findings else ""
        lines.append(f"{SIGNS[score['passed']]} {score['layer']}/{score['name']}: {value}{message}")
        lines += findings
    lines += [f"⚠ {warning}" for warning in graded["warnings"]]
    return "\n".join([*lines, graded["error"]] if graded["error"] else lines)
