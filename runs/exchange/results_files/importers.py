"""Results of other programs, read into runs: one file a program, listed in `IMPORTERS`.

To read another program's results, write a module with `read` and add a line; see docs/extending.md.
"""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from evaluators.tool_use.recognised_files import advice_for, not_read, recognised_results
from evaluators.transcripts.inspect_log import is_inspect_archive as is_inspect_archive
from runs.errors import RequestError
from runs.exchange.results_files import (
    agentv,
    inspect_log,
    junit,
    llm_tool_test,
    promptfoo,
    skill_creator,
    tool_forge,
)
from runs.exchange.results_files.archived_runs import Archived, read_run_archive, written_by
from runs.exchange.results_files.llm_tool_test import FIXTURE
from runs.exchange.results_files.values import ExternalRun, ResultsFile, ResultsImporter
from scenarios.archives import is_archive_file, read_members
from scenarios.reading import FileReader

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every entry: the same results give the same archive, which is imported once."""


READ = (*llm_tool_test.READ, *skill_creator.READ, *agentv.READ)
"""Names of the files that folders of results have."""


def _is_read(name: str) -> bool:
    # Maven's surefire writes a file a class; other names could be any XML.
    return name in READ or (name.startswith("TEST-") and name.endswith(".xml"))


def pack_folder(folder: Path) -> bytes:
    """Return the files of results below a folder as zip, without links; empty for none."""
    buffer, count, root = io.BytesIO(), 0, folder.resolve()
    # An iteration of skill-creator has its skill's name in the folder above.
    above = f"{root.parent.name}/" if root.parent.name.endswith(skill_creator.WORKSPACE) else ""
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, folders, names in os.walk(folder):
            folders.sort()
            if FIXTURE in folders and "artifacts" in folders:
                folders.remove(FIXTURE)  # The agent's files, not results.
            # The agent's own files may have the names of skill-creator's.
            left_out = skill_creator.READ if skill_creator.OUTPUTS in Path(place).parts else ()
            read = (name for name in sorted(names) if _is_read(name) and name not in left_out)
            for path in (Path(place, name) for name in read):
                if path.is_file() and not path.is_symlink():
                    # A run's folder keeps its name, by which results.jsonl refers to it.
                    inside = Path(f"{above}{root.name}") / path.relative_to(folder)
                    archive.writestr(zipfile.ZipInfo(inside.as_posix(), _EPOCH), path.read_bytes())
                    count += 1
            if skill_creator.is_iteration(Path(place).name):
                # Empty, so that an iteration without anything that is read is counted.
                inside = Path(f"{above}{root.name}") / Path(place).relative_to(folder) / ".iteration"
                archive.writestr(zipfile.ZipInfo(inside.as_posix(), _EPOCH), b"")
    return buffer.getvalue() if count else b""


INSPECT = ResultsImporter(
    "Inspect", "a log of Inspect (.eval, or JSON with `eval` and `samples`)", inspect_log.read
)
IMPORTERS = (
    ResultsImporter("tool-forge", "an EvalSuiteResult (JSON with `cases`)", tool_forge.read),
    ResultsImporter(
        "promptfoo", "promptfoo's output (JSON with `results`, or JSON lines with `testIdx`)", promptfoo.read
    ),
    ResultsImporter(
        "skill-creator",
        "skill-creator's benchmark.json or grading.json, or its workspace folder as zip",
        skill_creator.read,
    ),
    ResultsImporter(
        "llm-tool-test",
        "llm-tool-test's results.jsonl (JSON lines with `scenario_id`) or its results folder as zip",
        llm_tool_test.read,
    ),
    ResultsImporter(
        "AgentV",
        "AgentV's results (JSON lines with `eval_id` or `test_id`, such as index.jsonl, or their folder as zip)",
        agentv.read,
    ),
    INSPECT,
    ResultsImporter(
        "JUnit", "JUnit XML (`testsuites` or `testsuite`), or a folder of such files as zip", junit.read
    ),
)
"""The known programs; the first that finds runs in a file reads it."""


@dataclass(frozen=True)
class ReadResults:
    """The runs in a file or archive: of evalhub's own archive with its files, or another program's."""

    program: str = ""
    """Which program wrote it, as `IMPORTERS` names it."""
    version: str = ""
    """The version of the program or of its format; empty if the file doesn't say."""
    archived: list[Archived] = field(default_factory=list)
    members: dict[str, bytes] = field(default_factory=dict)
    external: tuple[ExternalRun, ...] = ()


@FileReader
def read_results(file: str, content: bytes) -> ReadResults:
    """Return the runs of a file or archive. Raises `RequestError` if it has none, `ScenarioFileError` for a bad archive."""
    members = {}
    # Inspect's own format is a zip, but compressed by a method that archives of files may not have.
    if is_archive_file(file, content) and not is_inspect_archive(content):
        members = {member.path: member.content for member in read_members(file, content)}
    if archived := read_run_archive(members, file):
        return ReadResults("evalhub", written_by(members), archived, members)
    results_file = ResultsFile(file, b"" if members else content, members)
    for importer in IMPORTERS if not is_inspect_archive(content) else (INSPECT,):
        if runs := importer.read(results_file):
            return ReadResults(importer.name, runs[0].program_version, external=runs)
    # An archive has no text of its own.
    raise _not_supported(file, "" if members else recognised_results(results_file.text, results_file.value))


def _not_supported(file: str, kind: str) -> RequestError:
    known = "; ".join(each.looks_like for each in IMPORTERS)
    problem = not_read(kind) if kind else "no results found"
    advice = f" {advice_for(kind)}." if advice_for(kind) else ""
    return RequestError(f"{file}: {problem}.{advice} evalhub imports {known}.")
