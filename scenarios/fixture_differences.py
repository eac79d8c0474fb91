"""Compare the fixture files of two versions of a suite."""

from __future__ import annotations

from collections.abc import Mapping

from scenarios.models import Fixture, SuiteEntry, SuiteVersion
from scenarios.storing import unpack
from scenarios.text_difference import TextDifference, lines_of, text_difference


def fixture_differences(before: SuiteVersion, after: SuiteVersion) -> list[tuple[str, TextDifference | None]]:
    """Return the differing fixture files by path; None where one is no text or too long. Two queries at most."""
    rows = SuiteEntry.objects.filter(
        suite_version__in=(before, after), scenario_version__fixture__isnull=False
    )
    columns = ("suite_version", "scenario_version__content__fixture", "scenario_version__fixture")
    used: dict[int, dict[str, int]] = {before.pk: {}, after.pk: {}}
    for version, name, fixture in rows.values_list(*columns).order_by("position"):
        used[version][name or ""] = fixture
    old, new = used.values()
    if old == new:
        return []
    keys = {*old.values(), *new.values()}
    archives = dict(Fixture.objects.filter(pk__in=keys).values_list("pk", "archive"))
    sides = [_files(each, archives) for each in (old, new)]
    paths = sorted(path for path in sides[0].keys() | sides[1] if sides[0].get(path) != sides[1].get(path))
    return [(path, _difference(sides[0].get(path, b""), sides[1].get(path, b""))) for path in paths]


def _files(fixtures: dict[str, int], archives: Mapping[int, bytes | memoryview]) -> dict[str, bytes]:
    """Return the contents of a version's fixture files, by the fixture's name and the path in it."""
    return {
        f"{name}/{file.path}".lstrip("/"): file.content
        for name, pk in fixtures.items()
        for file in unpack(bytes(archives[pk]))
    }


def _difference(before: bytes, after: bytes) -> TextDifference | None:
    try:
        return text_difference(lines_of(before.decode()), lines_of(after.decode()))
    except UnicodeDecodeError:
        return None
