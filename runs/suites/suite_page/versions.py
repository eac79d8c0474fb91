"""Read a suite's versions and the changes of one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count

from evaluators.statistics.comparability import Standard
from scenarios.differences import SuiteDifference, compare_suites, contents_of
from scenarios.models import Suite, SuiteVersion

MOST = 30
"""Versions on a suite's page."""


@dataclass(frozen=True)
class VersionChange:
    """A suite's versions, newest first, and the changes between two of them."""

    versions: Sequence[SuiteVersion]
    before: SuiteVersion | None = None
    after: SuiteVersion | None = None
    difference: SuiteDifference | None = None
    """None for the first version."""
    standards: Mapping[int, Mapping[str, Standard]] = field(default_factory=dict)
    """Those of both versions' scenarios, by version and key."""


def change_between(suite: Suite, before: str, after: str) -> VersionChange | None:
    """Return the changes between any two versions, with the scenarios' contents; None if one is missing. Two queries."""
    numbers = [int(each) for each in (before, after) if each.isdecimal() and len(each) < 9]
    rows = suite.versions.select_related("created_by").defer("targets_text", "solutions", "config")
    by_number = {str(each.number): each for each in rows.filter(number__in=numbers)}
    if before == after or before not in by_number or after not in by_number:
        return None
    pair = by_number[before], by_number[after]
    return VersionChange((), *pair, compare_suites(*contents_of(*pair)))


def version_change(suite: Suite, number: str = "", *, whole: bool = False) -> VersionChange:
    """Return a suite's last versions, and the changes of the one with this number, by default the newest.

    `whole` also loads the scenarios' contents to compare their lines. Two queries, one for the first version.
    """
    rows = suite.versions.select_related("created_by").defer("targets_text", "solutions", "config")
    versions = list(rows.annotate(run_count=Count("runs")).order_by("-number")[: MOST + 1])
    index = next((place for place, each in enumerate(versions[:MOST]) if str(each.number) == number), 0)
    if len(versions) < index + 2:
        return VersionChange(versions)
    after, before = versions[index : index + 2]
    contents = contents_of(before, after, whole=whole)
    standards = {
        version.pk: {key: each.parts for key, each in scenarios.items()}
        for version, scenarios in zip((before, after), contents, strict=True)
    }
    return VersionChange(versions[:MOST], before, after, compare_suites(*contents), standards)
