"""Read other people's files: in this process, or on a server in another one with limits of time and memory.

A command reads its own user's files here, which is fastest; a server calls `set_caller`. Suites travel between
processes with each file's content once, and fixtures name contents by hash.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from inspect import signature
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from msgspec import Struct

from scenarios import bundles
from scenarios.bundles import Bundle
from scenarios.formats import companions, parse_files, yaml_text
from scenarios.formats.parsed import Fixture, FixtureFile, ParsedSuite, PositionedDocument


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


P = ParamSpec("P")
T = TypeVar("T")


class FileReader(Generic[P, T]):
    """A function that reads other people's files, called where `set_caller` says.

    Its first argument is the name of the file or the upload. Arguments and result have types that MessagePack holds,
    or pydantic's. It raises `ScenarioFileError` or `RequestError`, and `TryLater` where it can't be called now.
    """

    def __init__(self, function: Callable[P, T]) -> None:
        self.function = function
        self.name = f"{function.__module__}:{function.__qualname__}"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        bound = signature(self.function).bind(*args, **kwargs)
        bound.apply_defaults()
        result: T = _callers[0](self, bound.args)
        return result

    def types(self) -> tuple[Any, Any]:
        """Return the types of its arguments, as one of a tuple, and of its result."""
        hints = get_type_hints(self.function)
        result = hints.pop("return")
        return tuple[tuple(hints.values())], result  # type: ignore[misc]  # a tuple of types, known only here


Caller = Callable[[FileReader[..., Any], tuple[Any, ...]], Any]


def call_here(reader: FileReader[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call the function in this process."""
    return reader.function(*arguments)


_callers: list[Caller] = [call_here]


def set_caller(caller: Caller) -> None:
    """Set what calls the functions that read other people's files from now on."""
    _callers[:] = [caller]


@FileReader
def read_upload(name: str, data: bytes) -> Bundle:
    """Return the files of an uploaded archive, or the single file."""
    return bundles.unpack_upload(name, data)


@FileReader
def read_yaml_document(file: str, content: bytes) -> PositionedDocument:
    """Return a YAML document."""
    return yaml_text.read_yaml(content, file)


@FileReader
def find_companions(name: str, content: bytes) -> tuple[str, ...]:
    """Return the files that a scenario file names."""
    return companions(name, content)


def read_suites(
    bundle: Bundle, *, command_pattern: str = "", strict: bool = False
) -> tuple[ParsedSuite, ...]:
    """Return the suites of a bundle.

    `command_pattern` is the project's, for scenarios without one. `strict` rejects eval cases that assert nothing or
    have unknown keys. Raises `ScenarioFileError` with every problem of every file, and `TryLater`.
    """
    if _callers[0] is call_here:
        return _parse(bundle, command_pattern, strict)
    sent = Bundle(bundle.name, bundle.files, bundle.executables)
    described = _describe_suites(bundle.name, sent, command_pattern, strict)
    return tuple(restore_suite(suite, bundle.files) for suite in described)


def _parse(bundle: Bundle, command_pattern: str, strict: bool) -> tuple[ParsedSuite, ...]:
    return parse_files(
        bundle.files,
        name=bundle.name,
        command_pattern=command_pattern,
        executables=bundle.executables,
        decoded=bundle.decoded,
        strict=strict,
    )


@FileReader
def _describe_suites(name: str, bundle: Bundle, command_pattern: str, strict: bool) -> list[SuiteMessage]:
    """Return the suites of an upload as they are sent."""
    messages = [describe_suite(suite, bundle.files) for suite in _parse(bundle, command_pattern, strict)]
    # What can't be restored within this process's limits would fill the other one.
    for message in messages:
        restore_suite(message, bundle.files)
    return messages
