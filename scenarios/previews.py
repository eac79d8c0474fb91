"""What an upload would change, said before anything of it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalhub.teams.models import Project
from scenarios.differences import Difference, contents_of, difference, parsed_contents
from scenarios.formats.parsed import ParsedSuite
from scenarios.guidance import named_guidelines
from scenarios.hashing import content_hash, rubric_hash, suite_hash
from scenarios.imports import slug_of
from scenarios.models import Suite, SuiteVersion


@dataclass(frozen=True)
class Preview:
    """What one suite of an upload would become."""

    parsed: ParsedSuite
    sha256: str
    suite: Suite | None
    """None where it is new."""
    last: SuiteVersion | None
    """What it is held against: the version of the suite's last upload."""
    kept: SuiteVersion | None
    """The version that has just this content already."""
    number: int
    """Of the version that it would be."""
    difference: Difference

    @property
    def rubrics(self) -> int:
        """How many different rubrics its scenarios name."""
        judges = (each.criteria.judge for each in self.parsed.scenarios)
        return len({rubric_hash(judge.rubric) for judge in judges if judge})


def preview(parsed: ParsedSuite, project: Project) -> Preview:
    """Return what storing a suite would change. Up to five queries."""
    sha256 = suite_hash(parsed, named_guidelines(parsed))
    suite = Suite.objects.filter(project=project, slug=slug_of(parsed)).first()
    upload = suite.uploads.select_related("suite_version").first() if suite else None
    kept = suite.versions.filter(sha256=sha256).first() if suite else None
    newest = suite.versions.values_list("number", flat=True).first() if suite else None
    last = upload.suite_version if upload else None
    before = contents_of(last)[0] if last else {}
    number = kept.number if kept else (newest or 0) + 1
    changed = difference(before, parsed_contents(parsed))
    return Preview(parsed, sha256, suite, last, kept, number, changed)


def seal_of(previews: Sequence[Preview]) -> str:
    """Return a word for what was looked at: the contents, and the versions that they were held against."""
    return content_hash(
        [[slug_of(each.parsed), each.sha256, each.last.pk if each.last else None] for each in previews]
    )
