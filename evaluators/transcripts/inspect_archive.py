"""A log of Inspect in its own format (.eval): a zip of JSON, compressed with Zstandard or Deflate."""

from __future__ import annotations

import io
import zipfile
import zlib
from importlib import import_module
from types import ModuleType

import msgspec

from evalhub.lib.limits import LARGEST_RECORD
from evaluators.transcripts.reading import UnreadableTranscript
from evaluators.transcripts.stream import Object, mapping_or_empty

_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_LOCAL_HEADER = 30
"""Bytes of an entry's header before its name."""


def is_archive(head: bytes) -> bool:
    """Return whether a file with this beginning is a log of Inspect as archive, which starts with its journal."""
    return head.startswith(b"PK\x03\x04") and _START.encode() in head[: _LOCAL_HEADER + len(_START)]


def read_archive(raw: bytes) -> Object:
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
