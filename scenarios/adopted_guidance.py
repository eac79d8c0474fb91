"""Which guidance a suite uses, and how a version becomes it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from evalhub.teams import audit
from scenarios.bundles import Bundle
from scenarios.formats.parsed import ParsedSuite, ScenarioFileError
from scenarios.guidance import named_guidelines, suite_guidance
from scenarios.imports import keep_source, slug_of, store_suite
from scenarios.models import Guidance, Suite, Upload
from scenarios.sources import bundle_with_guidance, parse_bundle, source_of
from scenarios.storing import guidance_files, guidance_hash, suite_hash


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
    # Read before the lock, because reading files takes a process of its own.
    planned = plan_adoption(suite, guidance)
    if planned is None:
        raise AdoptionRefused(f"{suite.name} was never uploaded. Upload its files first.")
    was = planned.upload.guidance
    if was == guidance:
        return False
    with transaction.atomic():
        Suite.objects.select_for_update().get(pk=suite.pk)
        if suite.uploads.first() != planned.upload:
            raise AdoptionRefused(
                f"Somebody uploaded {suite.name} in the meantime. Look at it and adopt again."
            )
        store_adoption(planned, suite, by=by)
        audit.append_event(
            suite.project, by, "guidance.adopt", guidance, suite=suite.slug, was=str(was) if was else ""
        )
    return True


@dataclass(frozen=True)
class GuidanceAdoption:
    """A version of guidance, or none, that is to become a suite's."""

    guidance: Guidance | None
    upload: Upload
    """The suite's last one, which it replaces."""
    edited: tuple[Bundle, ParsedSuite] | None
    """The kept files with its documents; None where they can't be placed or no files were kept."""


def plan_adoption(suite: Suite, guidance: Guidance | None) -> GuidanceAdoption | None:
    """Read how a version of guidance becomes a suite's; None for a suite without an upload. Expects the suite's project.

    Call it outside a transaction: it reads the suite's files, which may take seconds.
    """
    upload = suite.uploads.select_related("guidance", "suite_version").first()
    if upload is None:
        return None
    return GuidanceAdoption(guidance, upload, _files_with(suite, upload, guidance))


def store_adoption(planned: GuidanceAdoption, suite: Suite, *, by: User | None) -> None:
    """Store a further upload of the suite with other guidance and the same scenarios. Requires a transaction.

    Without edited files the next upload of the kept ones brings their own documents back.
    """
    if planned.edited is not None:
        bundle, parsed = planned.edited
        stored = store_suite(parsed, suite.project, by=by)
        keep_source(bundle, [stored.version], suite.project)
    else:
        version = planned.upload.suite_version
        Upload.objects.create(suite=suite, suite_version=version, guidance=planned.guidance, created_by=by)


def _files_with(suite: Suite, upload: Upload, guidance: Guidance | None) -> tuple[Bundle, ParsedSuite] | None:
    """Return the kept files with a version's documents; None unless an upload of them brings exactly these."""
    source = source_of(suite)
    if source is None:
        return None
    bundle = bundle_with_guidance(source, guidance_files(upload.guidance), guidance_files(guidance))
    try:
        suites = parse_bundle(bundle, suite.project.command_pattern)
    except ScenarioFileError:
        # A newer release may require more of files than the one that stored them.
        return None
    parsed = next((each for each in suites if slug_of(each) == suite.slug), None)
    if parsed is None:
        return None
    named = named_guidelines(parsed)
    documents = suite_guidance(parsed, named)
    is_wanted = (
        guidance_hash(documents) == guidance.sha256
        if guidance and documents
        else guidance is None and not documents
    )
    is_same = suite_hash(parsed, named) == upload.suite_version.sha256
    return (bundle, parsed) if is_wanted and is_same else None
