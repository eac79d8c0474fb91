"""A log of Inspect, as JSON or as `.eval`: a transcript of each sample, from its messages and events.

`.eval` is a zip of JSON, compressed with Zstandard or Deflate.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType

import msgspec

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.json_values import int_or_none
from evaluators.model import Event, Json, NotRun, Transcript, Usage, total_usage
from evaluators.transcripts.reading import UnreadableTranscript, decode_output
from evaluators.transcripts.stream import (
    Object,
    count_or_zero,
    make_transcript,
    mapping_or_empty,
    text_of_message,
    text_or_none,
)
from evaluators.transcripts.traces import as_timestamp, shell_command

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_LOCAL_HEADER = 30
"""Bytes of an entry's header before its name."""


def is_inspect_archive(head: bytes) -> bool:
    """Return whether a file with this beginning is a log of Inspect as archive, which starts with its journal."""
    return head.startswith(b"PK\x03\x04") and _START.encode() in head[: _LOCAL_HEADER + len(_START)]


def read_inspect_archive(raw: bytes) -> Object:
    """Return the log as Inspect writes it in one JSON file. Raises `UnreadableTranscript`.

    A log that was cut off before its end has no header; it has the beginning that its journal states.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return _read(archive, raw)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise UnreadableTranscript(f"The log can't be unpacked: {str(error).rstrip('.')}.") from error


def _read(archive: zipfile.ZipFile, raw: bytes) -> Object:
    entries = {each.filename: each for each in archive.infolist()}
    left = LARGEST_RECORD
    decoded: dict[str, Object] = {}
    head = _HEADER if _HEADER in entries else _START
    for name in (head, *(name for name in entries if name.startswith(_SAMPLES) and name.endswith(".json"))):
        if name not in entries:
            raise UnreadableTranscript("The archive isn't a log of Inspect: it has no header.json.")
        content = _unpack(archive, entries[name], raw, left + 1)
        left -= len(content)
        if left < 0:
            raise UnreadableTranscript(
                f"The log has more than {LARGEST_RECORD >> 20} MB unpacked. Write one for fewer samples."
            )
        decoded[name] = _decode(name, content)
    header = decoded.pop(head)
    return {"status": "started", **header, "samples": list(decoded.values())}


def _decode(name: str, content: bytes) -> Object:
    try:
        return mapping_or_empty(msgspec.json.decode(content))
    except (ValueError, RecursionError) as error:
        raise UnreadableTranscript(f"{name}: the JSON is broken: {error}.") from error


def _unpack(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, raw: bytes, most: int) -> bytes:
    """Return the first `most` bytes of an entry."""
    if entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(entry) as file:
            return file.read(most)
    # The number of its method in zip archives, which zipfile doesn't unpack before Python 3.14.
    if entry.compress_type != 93:
        raise UnreadableTranscript(
            f"The log can't be unpacked: {entry.filename} is compressed by another method than Deflate or Zstandard."
        )
    at = entry.header_offset
    # The name and the extra fields before the content have their own lengths here.
    lengths = (int.from_bytes(raw[at + n : at + n + 2], "little") for n in (26, 28))
    begin = at + _LOCAL_HEADER + sum(lengths)
    zstandard = _zstandard()
    try:
        with zstandard.ZstdFile(io.BytesIO(raw[begin : begin + entry.compress_size])) as file:
            content: bytes = file.read(most)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(f"{entry.filename}: {error}") from error
    return content


def _zstandard() -> ModuleType:
    """Return the module that unpacks it: of Python from 3.14 on, else its backport."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnreadableTranscript(
        "The log is compressed with Zstandard, which is not installed here. Install backports.zstd, or write the log as"
        " JSON."
    )


_NOT_RUN: Mapping[str, NotRun] = {"parsing": "invalid", "approval": "denied"}
"""Why a call never ran, by the type of its error."""


def parse(raw: bytes) -> Transcript:
    """Return the only sample of a log. Raises `UnreadableTranscript` for other files, and logs of several samples."""
    samples = list_inspect_samples(read_log(raw))
    if not samples:
        raise UnreadableTranscript("The output isn't a log of Inspect with samples, as JSON or `.eval`.")
    if len(samples) > 1:
        raise UnreadableTranscript(
            f"The log has {len(samples)} samples, and a transcript is of one. Import the log as sessions."
        )
    return read_sample(samples[0])


def read_log(raw: bytes) -> Object:
    """Return a decoded log, or what else the JSON is. Raises `UnreadableTranscript`."""
    return read_inspect_archive(raw) if is_inspect_archive(raw) else mapping_or_empty(decode_output(raw))


def list_inspect_samples(value: Object) -> list[Object]:
    """Return the samples of a decoded log; none of another program's file."""
    listed = value.get("samples")
    is_log = isinstance(value.get("eval"), dict) and isinstance(value.get("plan"), dict)
    return [mapping_or_empty(each) for each in listed] if is_log and isinstance(listed, list) else []


def read_sample(sample: Object) -> Transcript:
    """Return what a sample's messages say, with the exit codes and times of its events."""
    codes, times = _codes(sample), _times(sample)
    events = [
        event for message in _objects_of(sample, "messages") for event in _events(message, codes, times)
    ]
    if failure := text_or_none(mapping_or_empty(sample.get("error")).get("message")):
        events.append(Event("error", text=failure))
    usage = {
        model: _usage(mapping_or_empty(tokens))
        for model, tokens in mapping_or_empty(sample.get("model_usage")).items()
    }
    output = mapping_or_empty(sample.get("output"))
    return make_transcript(
        events,
        answer=text_or_none(output.get("completion")) or "",
        usage=total_usage(usage.values()),
        usage_by_model=usage,
    )


def _objects_of(sample: Object, name: str) -> Iterator[Object]:
    listed = sample.get(name)
    yield from map(mapping_or_empty, listed if isinstance(listed, list) else ())


def _events(
    message: Object, codes: Mapping[str, int], times: Mapping[str, tuple[str | None, str | None]]
) -> Iterator[Event]:
    role, content = text_or_none(message.get("role")) or "", message.get("content")
    if role == "tool":
        yield _result(message, codes, times)
        return
    if role == "system":
        return
    yield from (
        Event("model_step", name="reasoning", text=text_or_none(part.get("reasoning")))
        for part in map(mapping_or_empty, content if isinstance(content, list) else ())
        if part.get("type") == "reasoning"
    )
    if text := text_of_message(content):
        yield Event("message", role=role, text=text)
    calls = message.get("tool_calls")
    for call in map(mapping_or_empty, calls if isinstance(calls, list) else ()):
        id, name = text_or_none(call.get("id")), text_or_none(call.get("function"))
        arguments, began = call.get("arguments"), times.get(id or "", (None, None))[0]
        yield Event("tool_call", id, name, shell_command(name, arguments), arguments, timestamp=began)


def _result(
    message: Object, codes: Mapping[str, int], times: Mapping[str, tuple[str | None, str | None]]
) -> Event:
    """Return a call's result. A call without an error ran, whatever its command's exit code."""
    id, name = text_or_none(message.get("tool_call_id")), text_or_none(message.get("function"))
    error = mapping_or_empty(message.get("error"))
    kind = text_or_none(error.get("type")) or ""
    not_run = _NOT_RUN.get(kind, "")
    is_shell = shell_command(name, {"command": ""}) is not None
    # Errors of calls that ran and were ended.
    failed = bool(error) and not not_run and kind not in ("timeout", "limit", "cancelled")
    return Event(
        "tool_result",
        id,
        name,
        output=text_of_message(message.get("content")) or error.get("message"),
        exit_code=codes.get(id or "") if not error else None,
        success=False if failed else None if error or is_shell else True,
        timestamp=times.get(id or "", (None, None))[1],
        not_run=not_run,
    )


def _codes(sample: Object) -> dict[str, int]:
    """Return the exit codes of commands by their call: what the sandbox executed in the call's own span.

    A call that executed several commands, or none, has no code.
    """
    executed: dict[str, list[int]] = {}
    owners: dict[str, str] = {}
    span = ""
    for event in _objects_of(sample, "events"):
        kind = event.get("event")
        if kind == "span_begin" and event.get("type") == "tool":
            span = text_or_none(event.get("id")) or ""
        elif kind == "tool" and span:
            # Inspect writes a call right after the beginning of its span.
            owners[span] = text_or_none(event.get("id")) or ""
            span = ""
        elif kind == "sandbox" and event.get("action") == "exec":
            code = int_or_none(event.get("result"))
            if code is not None:
                executed.setdefault(str(event.get("span_id")), []).append(code)
    return {owners[at]: codes[0] for at, codes in executed.items() if len(codes) == 1 and owners.get(at)}


def _times(sample: Object) -> dict[str, tuple[str | None, str | None]]:
    """Return when each call began and ended."""
    return {
        str(event.get("id")): (as_timestamp(event.get("timestamp")), as_timestamp(event.get("completed")))
        for event in _objects_of(sample, "events")
        if event.get("event") == "tool"
    }


def _usage(tokens: Object) -> Usage:
    """Return a model's tokens: Inspect counts input beside the cache."""
    read, written = (
        count_or_zero(tokens.get("input_tokens_cache_read")),
        count_or_zero(tokens.get("input_tokens_cache_write")),
    )
    reasoning: Json = tokens.get("reasoning_tokens")
    return Usage(
        count_or_zero(tokens.get("input_tokens")) + read + written,
        count_or_zero(tokens.get("output_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=count_or_zero(reasoning),
    )
