"""The versions of a suite, and what one of them changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from scenarios.differences import Difference, contents_of, difference
from scenarios.models import Suite, SuiteVersion

MOST = 30
"""Versions that a suite's page lists."""


@dataclass(frozen=True)
class VersionChange:
    """A suite's versions, newest first, with one of them held against the one before it."""

    versions: Sequence[SuiteVersion]
    before: SuiteVersion | None = None
    after: SuiteVersion | None = None
    difference: Difference | None = None
    """None where there is no version before."""


def version_change(suite: Suite, number: str = "", *, whole: bool = False) -> VersionChange:
    """Return a suite's last versions, and what the one with this number changed, else the newest.

    With `whole` the contents of the scenarios are read, for their lines. Two queries, one without a version before.
    """
    found = suite.versions.select_related("created_by").defer("targets_text", "config")
    versions = list(found.annotate(run_count=Count("runs")).order_by("-number")[: MOST + 1])
    asked = next((place for place, each in enumerate(versions[:MOST]) if str(each.number) == number), 0)
    if len(versions) < asked + 2:
        return VersionChange(versions)
    after, before = versions[asked : asked + 2]
    changed = difference(*contents_of(before, after, whole=whole))
    return VersionChange(versions[:MOST], before, after, changed)
