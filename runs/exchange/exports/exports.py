"""List the export formats of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from evaluators.grading.suite_result import suite_result
from runs.exchange.exports.agentv_jsonl import jsonl
from runs.exchange.exports.document import run_document
from runs.exchange.exports.junit import junit_xml
from runs.exchange.exports.llm_tool_test import results_archive
from runs.exchange.exports.suite_result import suite_run
from runs.models import Run


@dataclass(frozen=True)
class Export:
    """One format: label, file type and writer."""

    title: str
    media_type: str
    ending: str
    write: Callable[[Run], str | bytes]
    """Bytes for an archive."""

    @property
    def is_archive(self) -> bool:
        return self.media_type == "application/zip"


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


EXPORTS: dict[str, Export] = {
    "json": Export("JSON", "application/json", "json", lambda run: _pretty(run_document(run.pk))),
    "suite-result": Export(
        "Suite result JSON",
        "application/json",
        "suite-result.json",
        lambda run: _pretty(suite_result(suite_run(run))),
    ),
    "jsonl": Export("AgentV JSONL", "application/jsonl", "jsonl", lambda run: "".join(jsonl(run))),
    "junit": Export("JUnit", "application/xml", "junit.xml", lambda run: junit_xml([run_document(run.pk)])),
    "llm-tool-test": Export(
        "llm-tool-test folders (zip)", "application/zip", "llm-tool-test.zip", results_archive
    ),
}
"""By their names in the command line and pages. All redact secrets."""


def export_run(run_id: int, name: str) -> bytes:
    """Return a run in a format of `EXPORTS` as a file's content. Raises KeyError for an unknown name."""
    related = ("suite", "suite_version", "target", "guidance", "by", "project")
    content = EXPORTS[name].write(Run.objects.select_related(*related).get(pk=run_id))
    return content if isinstance(content, bytes) else content.encode()
