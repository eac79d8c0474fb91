"""Import files as immutable versions, for pages, REST and the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils.text import slugify

from evalhub.teams import audit
from evalhub.teams.models import Project
from scenarios.bundles import Bundle
from scenarios.differences import SuiteDifference, compare_suites, contents_of, parsed_contents
from scenarios.formats.parsed import FixtureFile, ParsedSuite, Problem
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.models import Guidance, Suite, SuiteEntry, SuiteVersion, Upload
from scenarios.reading import read_suites
from scenarios.storing import (
    content_hash,
    keep_files,
    keep_scenarios,
    rubric_hash,
    store_fixture,
    store_guidance,
    suite_hash,
    task_fixture_hashes,
)


@dataclass(frozen=True)
class Changes:
    """Scenario keys by change since the suite's last version."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


@dataclass(frozen=True)
class Imported:
    """One imported suite."""

    suite: Suite
    version: SuiteVersion
    guidance: Guidance | None
    new_version: bool
    new_guidance: bool
    changes: Changes
    lints: tuple[Problem, ...]


def import_files(
    bundle: Bundle, *, project: Project, by: User | None, strict: bool = False
) -> tuple[Imported, ...]:
    """Store every suite of a bundle in one transaction and return them.

    Equal content reuses its version. `strict` is passed to `read_suites`. Raises `ScenarioFileError` with every
    problem and stores nothing.
    """
    suites = read_suites(bundle, command_pattern=project.command_pattern, strict=strict)
    with transaction.atomic():
        imported = tuple(store_suite(suite, project, by=by) for suite in suites)
        for parsed, stored in zip(suites, imported, strict=True):
            _keep_format(stored.suite, parsed.format)
        keep_source(bundle, [stored.version for stored in imported], project)
        return imported


def restore_version(
    bundle: Bundle, slug: str, *, project: Project, by: User | None, is_current: bool
) -> SuiteVersion | None:
    """Store the suite with a slug from an upload's files, and return its version; None if the files hold no such suite.

    Unless `is_current`, an existing suite keeps its last upload. Raises `ScenarioFileError`.
    """
    suites = read_suites(bundle, command_pattern=project.command_pattern)
    parsed = next((each for each in suites if slug_of(each) == slug), None)
    if parsed is None:
        return None
    version = store_suite(parsed, project, by=by, is_current=is_current).version
    keep_source(bundle, [version], project)
    _keep_format(version.suite, parsed.format)
    return version


def _keep_format(suite: Suite, format: str) -> None:
    """Set the format of an upload, because results that were imported before may not have named it."""
    if suite.format != format:
        suite.format = format
        suite.save(update_fields=["format"])


def keep_source(bundle: Bundle, versions: Sequence[SuiteVersion], project: Project) -> None:
    """Store the files of an upload with its versions, replacing those of an earlier upload."""
    marked = bundle.executables
    files = tuple(
        FixtureFile(path, content, executable=path in marked) for path, content in bundle.files.items()
    )
    source = keep_files(project, files)
    for version in versions:
        if (version.source_id, version.source_name) != (source.pk, bundle.name[:300]):
            version.source, version.source_name = source, bundle.name[:300]
            version.save(update_fields=["source", "source_name"])


def store_suite(
    parsed: ParsedSuite, project: Project, *, by: User | None, is_current: bool = True
) -> Imported:
    """Store one suite, within the caller's transaction.

    Unless `is_current`, a suite that was uploaded before keeps its last upload.
    """
    suite, _ = Suite.objects.get_or_create(
        project=project, slug=slug_of(parsed), defaults={"name": parsed.name, "format": parsed.format}
    )
    # The lock prevents two uploads from using the same number.
    suite = Suite.objects.select_for_update().get(pk=suite.pk)
    last = suite.uploads.select_related("suite_version").first()
    named = named_guidelines(parsed)
    documents = suite_guidance(parsed, named)
    guidance, new_guidance = store_guidance(suite, documents, by=by) if documents else (None, False)
    sha256 = suite_hash(parsed, named)
    version = suite.versions.filter(sha256=sha256).first()
    new_version = version is None
    if version is None:
        version = _new_version(suite, parsed, sha256, guidance, by)
    else:
        # Update the targets file, which is not part of a version's content.
        uploaded = (parsed.targets_file, parsed.targets_text)
        if parsed.targets_text and uploaded != (version.targets_file, version.targets_text):
            version.targets_file, version.targets_text = uploaded
            version.save(update_fields=["targets_file", "targets_text"])
        # Replace the reference solutions, which are not part of a version's content.
        if version.solutions != parsed.solutions:
            version.solutions = dict(parsed.solutions)
            version.save(update_fields=["solutions"])
    if last is not None and not is_current:
        return Imported(suite, version, guidance, new_version, new_guidance, Changes(), parsed.lints)
    if last is None or (last.suite_version_id, last.guidance_id) != (
        version.pk,
        guidance.pk if guidance else None,
    ):
        Upload.objects.create(suite=suite, suite_version=version, guidance=guidance, created_by=by)
        audit.append_event(project, by, "suite.upload", suite.slug, version=version.number, new=new_version)
    present = version.scenario_versions.values("scenario_id")
    suite.scenarios.filter(pk__in=present).update(retired=False)
    suite.scenarios.exclude(pk__in=present).update(retired=True)
    old, new = _contents(last.suite_version if last else None), _contents(version)
    common = old.keys() & new.keys()
    changes = Changes(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(key for key in common if old[key] != new[key])),
        retired=tuple(sorted(old.keys() - new.keys())),
        unchanged=tuple(sorted(key for key in common if old[key] == new[key])),
    )
    return Imported(suite, version, guidance, new_version, new_guidance, changes, parsed.lints)


def slug_of(parsed: ParsedSuite) -> str:
    """Return the slug of a suite."""
    return slugify(re.sub(r"[./_]+", "-", parsed.name))[:120] or "suite"


def _new_version(
    suite: Suite, parsed: ParsedSuite, sha256: str, guidance: Guidance | None, by: User | None
) -> SuiteVersion:
    version = SuiteVersion.objects.create(
        suite=suite,
        number=(suite.versions.aggregate(last=Max("number"))["last"] or 0) + 1,
        sha256=sha256,
        guidance=guidance,
        targets_text=parsed.targets_text,
        targets_file=parsed.targets_file,
        solutions=dict(parsed.solutions),
        config=dict(parsed.settings),
        lints=[lint.as_json() for lint in parsed.lints],
        created_by=by,
    )
    named = named_guidelines(parsed)
    fixtures = {name: store_fixture(suite.project, files, named) for name, files in parsed.fixtures.items()}
    scenario_versions = keep_scenarios(suite, parsed.scenarios, fixtures, task_fixture_hashes(parsed))
    SuiteEntry.objects.bulk_create(
        [
            SuiteEntry(suite_version=version, scenario_version=scenario_version, position=position)
            for position, scenario_version in enumerate(scenario_versions)
        ],
        batch_size=500,
    )
    return version


def _contents(version: SuiteVersion | None) -> dict[str, str]:
    if version is None:
        return {}
    return dict(version.entries.values_list("scenario_version__scenario__key", "scenario_version__sha256"))


@dataclass(frozen=True)
class Preview:
    """The changes that storing one suite would make."""

    parsed: ParsedSuite
    sha256: str
    suite: Suite | None
    """None if it is new."""
    last: SuiteVersion | None
    """The version of the suite's last upload, which it is compared with."""
    kept: SuiteVersion | None
    """The stored version with the same content."""
    number: int
    """The number of the resulting version."""
    difference: SuiteDifference

    @property
    def rubrics(self) -> int:
        """The number of different rubrics."""
        judges = (each.criteria.judge for each in self.parsed.scenarios)
        return len({rubric_hash(judge.rubric) for judge in judges if judge})


def preview(parsed: ParsedSuite, project: Project) -> Preview:
    """Return the changes of storing a suite. Up to five queries."""
    sha256 = suite_hash(parsed, named_guidelines(parsed))
    suite = Suite.objects.filter(project=project, slug=slug_of(parsed)).first()
    upload = suite.uploads.select_related("suite_version").first() if suite else None
    version = suite.versions.filter(sha256=sha256).first() if suite else None
    newest = suite.versions.values_list("number", flat=True).first() if suite else None
    last = upload.suite_version if upload else None
    before = contents_of(last)[0] if last else {}
    number = version.number if version else (newest or 0) + 1
    changed = compare_suites(before, parsed_contents(parsed))
    return Preview(parsed, sha256, suite, last, version, number, changed)


def preview_token(previews: Sequence[Preview]) -> str:
    """Return a hash of the previewed contents and the versions they were compared with."""
    return content_hash(
        [[slug_of(each.parsed), each.sha256, each.last.pk if each.last else None] for each in previews]
    )
