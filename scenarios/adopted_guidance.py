"""Which guidance a suite uses, and how a version becomes it."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from scenarios.bundle_limits import Member, collect
from scenarios.bundles import Bundle
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.problems import ScenarioFileError
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.hashing import guidance_hash
from scenarios.imports import keep_source, slug_of, store_suite
from scenarios.models import Guidance, Suite, Upload
from scenarios.sources import Source, parse_bundle, source_of


class AdoptionRefused(ValueError):
    """A version can't become its suite's guidance; the message says why and what to do."""


def last_guidance(suite: Suite) -> Guidance | None:
    """Return the guidance of the suite's last upload, the default of a run. One query."""
    upload = suite.uploads.select_related("guidance").first()
    return upload.guidance if upload else None


def adopt_guidance(guidance: Guidance, *, by: User | None) -> bool:
    """Make a version its suite's guidance by an upload; return whether it wasn't. Raises `AdoptionRefused`.

    The suite's files get the version's documents, so that a later edit of another file keeps them. Where no file is
    known to hold a document, the upload alone names the version.
    """
    suite = guidance.suite
    last = suite.uploads.select_related("guidance", "suite_version").first()
    if last is None:
        raise AdoptionRefused(f"{suite.name} was never uploaded. Upload its files first.")
    if last.guidance_id == guidance.pk:
        return False
    # Read before the lock, because reading files takes a process of its own.
    changed = _changed_files(suite, last.guidance, guidance)
    with transaction.atomic():
        Suite.objects.select_for_update().get(pk=suite.pk)
        newest = suite.uploads.values_list("pk", flat=True).first()
        if newest != last.pk:
            raise AdoptionRefused(
                f"Somebody uploaded {suite.name} in the meantime. Look at it and adopt again."
            )
        if changed:
            bundle, parsed = changed
            keep_source(bundle, [store_suite(parsed, suite.project, by=by).version], suite.project)
        else:
            Upload.objects.create(
                suite=suite, suite_version=last.suite_version, guidance=guidance, created_by=by
            )
        was = str(last.guidance) if last.guidance else ""
        audit.append_event(suite.project, by, "guidance.adopt", guidance, suite=suite.slug, was=was)
    return True


def _changed_files(suite: Suite, old: Guidance | None, new: Guidance) -> tuple[Bundle, ParsedSuite] | None:
    """Return the suite's files with the new documents, and what they parse to; None where they can't be placed."""
    source = source_of(suite)
    contents = _place_in_files(source, _texts(old), _texts(new)) if source else None
    if source is None or contents is None:
        return None
    marked = {path for path, file in source.files.items() if file.executable}
    members = [Member(path, content, path in marked) for path, content in sorted(contents.items())]
    try:
        found = collect(source.version.source_name, iter(members))
        files = {each.path: each.content for each in found}
        bundle = Bundle(source.version.source_name, files, frozenset(marked & files.keys()))
        suites = parse_bundle(bundle, suite.project.command_pattern)
    except ScenarioFileError:
        # The stored files were valid once; a newer release may require more.
        return None
    parsed = next((each for each in suites if slug_of(each) == suite.slug), None)
    if parsed is None or guidance_hash(suite_guidance(parsed, named_guidelines(parsed))) != new.sha256:
        return None
    return bundle, parsed


def _place_in_files(
    source: Source, old: Mapping[str, bytes], new: Mapping[str, bytes]
) -> dict[str, bytes] | None:
    """Return the files' contents with each changed document in place of its old text; None if one has no place."""
    contents = {path: file.content for path, file in source.files.items()}
    for path in old.keys() | new.keys():
        if old.get(path) == new.get(path):
            continue
        places = [
            each
            for each, file in source.files.items()
            if f"/{each}".endswith(f"/{path}") and file.content == old.get(path)
        ]
        if not places:
            return None
        for each in places:
            if path in new:
                contents[each] = new[path]
            else:
                del contents[each]
    return contents


def _texts(guidance: Guidance | None) -> dict[str, bytes]:
    return {each["path"]: each["content"].encode() for each in guidance.files} if guidance else {}
