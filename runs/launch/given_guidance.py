"""A guidance document that comes with a request, in place of one of the suite's."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from scenarios.adopted_guidance import last_guidance
from scenarios.formats.parsed import FixtureFile
from scenarios.formats.upload import inside
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.guidance import Unplaced, place_documents, replace_documents
from scenarios.models import Guidance, SuiteVersion
from scenarios.naming import LONGEST_NAME
from scenarios.storing import guidance_files, store_guidance


class OutsideWorkspace(Unplaced):
    """The path that a document was given leads out of the workspace."""


@dataclass(frozen=True)
class GivenDocument:
    """A guidance document by its file's name, with its path in the workspace if one was given."""

    file: str
    content: bytes
    path: str = ""
    base: Guidance | None = None
    """The version that it changes; None for that of the suite's last upload."""


@dataclass(frozen=True)
class LaidDocument:
    """A suite's guidance with one document replaced or added."""

    files: GuidanceFiles
    path: str
    """Path of the document in the workspace."""
    name: str
    """The name of the version if it is new; empty if the document's own name says it."""


def place_document(version: SuiteVersion, document: GivenDocument) -> LaidDocument:
    """Return the suite's guidance with the document. Raises `Unplaced` with a sentence without the remedy."""
    files = guidance_files(document.base or last_guidance(version.suite) or version.guidance)
    path = inside("", document.path or document.file)
    if path in (None, "."):
        raise OutsideWorkspace(f"'{document.path or document.file}' is outside the workspace.")
    file = FixtureFile(str(path), document.content)
    (laid,) = place_documents((file,), files, named=(file.path,) if document.path else ())
    name = f"{document.file} over {laid.path}"[-LONGEST_NAME:] if laid.path != document.file else ""
    return LaidDocument(replace_documents(files, (laid,)), laid.path, name)


def keep_document(
    version: SuiteVersion, document: GivenDocument, *, by: User | None
) -> tuple[Guidance, bool]:
    """Store the suite's guidance with the document; return the version and whether it is new. Raises `Unplaced`."""
    laid = place_document(version, document)
    place = document.file[-LONGEST_NAME:], laid.path
    return store_guidance(version.suite, laid.files, by=by, name_if_new=laid.name, laid=place)
