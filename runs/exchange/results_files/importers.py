"""Results of other programs, read into runs: one file a program, listed in `IMPORTERS`.

To read another program's results, write a module with `read` and add a line; see docs/extending.md.
"""

from __future__ import annotations

from evaluators.tool_use.recognised_files import advice_for, recognised_archive, recognised_results
from runs.errors import RequestError
from runs.exchange.results_files import agentv, llm_tool_test, promptfoo, tool_forge
from runs.exchange.results_files.values import ExternalRun, Importer, ResultsFile
from scenarios.archives import is_archive, member_names, read_members

IMPORTERS = (
    Importer("tool-forge", "an EvalSuiteResult (JSON with `cases`)", tool_forge.read),
    Importer(
        "promptfoo", "promptfoo's output (JSON with `results`, or JSON lines with `testIdx`)", promptfoo.read
    ),
    Importer(
        "llm-tool-test",
        "llm-tool-test's results.jsonl (JSON lines with `scenario_id`) or its results folder as zip",
        llm_tool_test.read,
    ),
    Importer("AgentV", "AgentV's results (JSON lines with `eval_id`)", agentv.read),
)
"""The known programs; the first that finds runs in a file reads it."""


def read_results(content: bytes, file: str) -> tuple[ExternalRun, ...]:
    """Return the runs of a file or archive. Raises `RequestError` if it has none, `ScenarioFileError` for a bad archive."""
    members = {}
    if is_archive(file, content):
        # Inspect compresses with Zstandard, which no member could be read by.
        if kind := recognised_archive(member_names(content)):
            raise _not_supported(file, kind)
        members = {member.path: member.content for member in read_members(file, content)}
    given = ResultsFile(file, b"" if members else content, members)
    for importer in IMPORTERS:
        if runs := importer.read(given):
            return runs
    # An archive has no text of its own.
    raise _not_supported(file, "" if members else recognised_results(given.text, given.value))


def _not_supported(file: str, kind: str) -> RequestError:
    known = "; ".join(each.looks_like for each in IMPORTERS)
    found = f"{kind}: not supported yet" if kind else "no results found"
    advice = f" {advice_for(kind)}." if advice_for(kind) else ""
    return RequestError(f"{file}: {found}.{advice} evalhub imports {known}.")
