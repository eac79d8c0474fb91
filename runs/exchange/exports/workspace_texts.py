"""The text files of stored workspaces, redacted, for an archive that can be imported again."""

from __future__ import annotations

from evaluators.redaction import redact_patterns
from runs.models import Artifact
from runs.results.files.artifacts import FileUnavailable, opened
from runs.results.files.changed_lines import LONGEST, text_of
from runs.results.files.kept_workspace import UNREADABLE, kept_files
from runs.results.files.workspace_archive import is_gits_own
from scenarios.bundle_limits import MAX_MEMBERS, check_path
from scenarios.formats.problems import ScenarioFileError

MOST_BYTES = 20_000_000
"""Bytes of text in one archive."""
MOST_NAMED = 20
"""Files named as left out of one trial."""


class WorkspaceTexts:
    """Reads workspaces until the archive is full: besides `others` files it takes what an import accepts."""

    def __init__(self, others: int) -> None:
        self._files = MAX_MEMBERS - others
        self._bytes = MOST_BYTES

    def read(self, kept: Artifact | None, folder: str) -> tuple[dict[str, str], list[str]]:
        """Return texts by path below `folder`, and why others are left out, a sentence or path each.

        Binary files can't be redacted, so they are left out, like files over 100 kB and Git's own.
        """
        texts, left_out = dict[str, str](), list[str]()
        if kept is None:
            return texts, left_out
        try:
            with opened(kept.sha256) as archive:
                for file, content in kept_files(archive, lambda file: file.size <= LONGEST):
                    path = f"{folder}/{file.path}"
                    text = text_of(content) if file.size <= LONGEST else None
                    if is_gits_own(file.path):
                        continue
                    if text is not None and _may_hold(path) and self._takes(file.size):
                        texts[path] = redact_patterns(text)
                    elif len(left_out) < MOST_NAMED:
                        left_out.append(redact_patterns(file.path))
        except FileUnavailable as error:
            left_out.append(str(error))
        except UNREADABLE:
            left_out.append("The stored workspace is damaged. Restore it from a backup.")
        return texts, left_out

    def _takes(self, size: int) -> bool:
        fits = self._files > 0 and self._bytes >= size
        if fits:
            self._files -= 1
            self._bytes -= size
        return fits


def _may_hold(path: str) -> bool:
    """Return whether an archive with this path is accepted."""
    try:
        check_path("", path)
    except ScenarioFileError:
        return False
    return True
