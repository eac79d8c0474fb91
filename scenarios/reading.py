"""Read other people's files: in this process, or on a server in another one with limits of time and memory.

A command reads its own user's files here, which is fastest; a server calls `set_caller`.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints

from scenarios import bundles
from scenarios.bundles import Bundle
from scenarios.formats import companions, parse_files, yaml_text
from scenarios.formats.parsed import ParsedSuite
from scenarios.formats.positions import PositionedDocument
from scenarios.suite_messages import SuiteMessage, describe_suite, restore_suite

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
    return bundles.read_upload(name, data)


@FileReader
def read_yaml(file: str, content: bytes) -> PositionedDocument:
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
