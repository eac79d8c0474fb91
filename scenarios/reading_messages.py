"""What a process that reads uploads is asked and answers, as MessagePack.

Contents of files go once: a fixture names those of the upload by their hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from msgspec import Struct, msgpack

from evaluators.model import CHECKED
from scenarios.bundles import Bundle
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite
from scenarios.formats.problems import Problem
from scenarios.spec import ScenarioSpec


class ReadingJob(Struct, frozen=True):
    """What to read: an upload's files out of `data`, or suites out of `files`."""

    name: str
    data: bytes | None = None
    files: dict[str, bytes] = {}
    executables: list[str] = []
    command_pattern: str = ""
    strict: bool = False


class FileInFixture(Struct, frozen=True, array_like=True):
    path: str
    executable: bool
    sha256: str
    """Of a file of the upload; empty for another content."""
    content: bytes = b""


class SuiteRead(Struct, frozen=True):
    """A parsed suite, with its scenarios as JSON."""

    name: str
    format: str
    scenarios: list[str]
    fixtures: dict[str, list[FileInFixture]]
    lints: list[Problem]
    targets_text: str
    targets_file: str
    settings: str
    """As JSON, whose whole numbers may be longer than those of MessagePack."""
    solutions: dict[str, str]


class ReadingAnswer(Struct, frozen=True):
    """What came of a job: problems, or what was asked for."""

    problems: list[Problem] = []
    files: dict[str, bytes] = {}
    executables: list[str] = []
    name: str = ""
    suites: list[SuiteRead] = []
    fault: str = ""
    """The traceback of an error of evalhub's own."""


encode = msgpack.encode
decode_job = msgpack.Decoder(ReadingJob).decode
decode_answer = msgpack.Decoder(ReadingAnswer).decode


def describe_suite(suite: ParsedSuite, files: Mapping[str, bytes]) -> SuiteRead:
    """Return a suite as it is sent; `files` are those of the upload."""
    known = {_hash(content) for content in files.values()}
    return SuiteRead(
        name=suite.name,
        format=suite.format,
        scenarios=[spec.model_dump_json() for spec in suite.scenarios],
        fixtures={name: _describe_fixture(fixture, known) for name, fixture in suite.fixtures.items()},
        lints=list(suite.lints),
        targets_text=suite.targets_text,
        targets_file=suite.targets_file,
        settings=json.dumps(dict(suite.settings)),
        solutions=dict(suite.solutions),
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


def restore_suite(sent: SuiteRead, files: Mapping[str, bytes]) -> ParsedSuite:
    """Return a suite as it was parsed. Patterns that were compiled when it was read aren't compiled again."""
    by_hash = {_hash(content): content for content in files.values()}
    return ParsedSuite(
        name=sent.name,
        format=sent.format,
        scenarios=tuple(ScenarioSpec.model_validate_json(each, context=CHECKED) for each in sent.scenarios),
        fixtures={name: _restore_fixture(own, by_hash) for name, own in sent.fixtures.items()},
        lints=tuple(sent.lints),
        targets_text=sent.targets_text,
        targets_file=sent.targets_file,
        settings=json.loads(sent.settings),
        solutions=sent.solutions,
    )


def _restore_fixture(sent: Sequence[FileInFixture], by_hash: Mapping[str, bytes]) -> Fixture:
    return tuple(
        FixtureFile(file.path, by_hash[file.sha256] if file.sha256 else file.content, file.executable)
        for file in sent
    )


def job_of(bundle: Bundle, *, command_pattern: str, strict: bool) -> ReadingJob:
    """Return the job that reads a bundle's suites."""
    return ReadingJob(
        name=bundle.name,
        files=dict(bundle.files),
        executables=sorted(bundle.executables),
        command_pattern=command_pattern,
        strict=strict,
    )
