"""Parsed suites as one process sends them to another: contents of files go once, and fixtures name them by hash."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from evaluators.model import CHECKED
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.formats.problems import Problem
from scenarios.spec import ScenarioSpec


class FileInFixture(Struct, frozen=True, array_like=True):
    path: str
    executable: bool
    sha256: str
    """Of a file of the upload; empty for another content."""
    content: bytes = b""


class SuiteMessage(Struct, frozen=True):
    """A parsed suite, with its scenarios as JSON."""

    name: str
    format: str
    scenarios: list[str]
    fixtures: dict[str, list[FileInFixture]]
    guidance: list[str]
    lints: list[Problem]
    targets_text: str
    targets_file: str
    settings: str
    """As JSON, whose whole numbers may be longer than those of MessagePack."""
    solutions: dict[str, str]
    left_out: list[str]


def describe_suite(suite: ParsedSuite, files: Mapping[str, bytes]) -> SuiteMessage:
    """Return a suite as it is sent; `files` are those of the upload."""
    known = {_hash(content) for content in files.values()}
    return SuiteMessage(
        name=suite.name,
        format=suite.format,
        scenarios=[spec.model_dump_json() for spec in suite.scenarios],
        fixtures={name: _describe_fixture(fixture, known) for name, fixture in suite.fixtures.items()},
        guidance=list(suite.guidance),
        lints=list(suite.lints),
        targets_text=suite.targets_text,
        targets_file=suite.targets_file,
        settings=json.dumps(dict(suite.settings)),
        solutions=dict(suite.solutions),
        left_out=list(suite.left_out),
    )


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
    """Return a suite as it was parsed. Patterns that were compiled when it was read aren't compiled again."""
    by_hash = {_hash(content): content for content in files.values()}
    return ParsedSuite(
        name=sent.name,
        format=sent.format,
        scenarios=tuple(ScenarioSpec.model_validate_json(each, context=CHECKED) for each in sent.scenarios),
        fixtures={name: _restore_fixture(own, by_hash) for name, own in sent.fixtures.items()},
        guidance=tuple(sent.guidance),
        lints=tuple(sent.lints),
        targets_text=sent.targets_text,
        targets_file=sent.targets_file,
        settings=json.loads(sent.settings),
        solutions=sent.solutions,
        left_out=tuple(sent.left_out),
    )


def _restore_fixture(sent: Sequence[FileInFixture], by_hash: Mapping[str, bytes]) -> Fixture:
    return tuple(
        FixtureFile(file.path, by_hash[file.sha256] if file.sha256 else file.content, file.executable)
        for file in sent
    )
