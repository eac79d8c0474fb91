"""Parsed suites as one process sends them to another: contents of files go once, and fixtures name them by hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

from msgspec import Struct

from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite


class FileInFixture(Struct, frozen=True, array_like=True):
    path: str
    executable: bool
    sha256: str
    """Of a file of the upload; empty for another content."""
    content: bytes = b""


class SuiteMessage(Struct, frozen=True):
    """A parsed suite, and what of it is sent in another form."""

    suite: ParsedSuite
    fixtures: dict[str, list[FileInFixture]]
    settings: str
    """As JSON, whose whole numbers may be longer than those of MessagePack."""


def describe_suite(suite: ParsedSuite, files: Mapping[str, bytes]) -> SuiteMessage:
    """Return a suite as it is sent; `files` are those of the upload."""
    known = {_hash(content) for content in files.values()}
    fixtures = {name: _describe_fixture(fixture, known) for name, fixture in suite.fixtures.items()}
    return SuiteMessage(replace(suite, fixtures={}, settings={}), fixtures, json.dumps(dict(suite.settings)))


def _describe_fixture(fixture: Fixture, known: set[str]) -> list[FileInFixture]:
    hashed = ((file, _hash(file.content)) for file in fixture)
    return [
        FileInFixture(file.path, file.executable, digest)
        if digest in known
        else FileInFixture(file.path, file.executable, "", file.content)
        for file, digest in hashed
    ]


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def restore_suite(sent: SuiteMessage, files: Mapping[str, bytes]) -> ParsedSuite:
    """Return a suite as it was parsed."""
    by_hash = {_hash(content): content for content in files.values()}
    fixtures = {
        name: tuple(
            FixtureFile(file.path, by_hash[file.sha256] if file.sha256 else file.content, file.executable)
            for file in own
        )
        for name, own in sent.fixtures.items()
    }
    return replace(sent.suite, fixtures=fixtures, settings=json.loads(sent.settings))
