"""The newest lines of an output, taken while more of them come."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs.targets.providers.recent_lines import KEPT, PrintedLines, WrittenLines

pytestmark = pytest.mark.one_database


def printed(*chunks: bytes) -> PrintedLines:
    lines = PrintedLines()
    for chunk in chunks:
        lines.take("stdout", chunk)
    return lines


def test_printed_lines_are_taken_once_they_are_complete() -> None:
    lines = printed(b"one\ntw")
    assert lines.complete() == b"one\n"
    assert lines.complete() == b""
    lines.take("stdout", b"o\nthree")
    assert lines.complete() == b"two\n"


def test_standard_error_has_no_lines() -> None:
    lines = printed(b"one\n")
    lines.take("stderr", b"warning\n")
    assert lines.complete() == b"one\n"


def test_of_a_flood_the_end_is_kept() -> None:
    taken = printed(*[b"%07d\n" % n for n in range(4 * KEPT // 8)]).complete()
    assert KEPT <= len(taken) <= 2 * KEPT
    assert taken.endswith(b"%07d\n" % (4 * KEPT // 8 - 1))


def test_it_is_known_of_printed_lines_whether_any_were_missed() -> None:
    assert not printed(*[b"x" * KEPT] * 2).missed
    assert printed(*[b"x" * KEPT] * 3).missed


def test_it_is_known_of_written_lines_whether_any_were_missed(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    lines = WrittenLines(file)
    for content, missed in ((b"one\n", False), (b"one\n" + b"x" * KEPT, False), (b"x" * 3 * KEPT, True)):
        file.write_bytes(content)
        lines.complete()
        assert lines.missed == missed
    lines = WrittenLines(file)
    for content, missed in ((b"one\ntwo\n"[:KEPT], False), (b"new\n", True)):
        file.write_bytes(content)
        lines.complete()
        assert lines.missed == missed


def test_a_line_without_end_takes_no_more_room_than_others() -> None:
    lines = printed(*[b"x" * KEPT] * 8, b"\nnext\n")
    taken = lines.complete()
    assert len(taken) <= 2 * KEPT
    assert taken.endswith(b"x\nnext\n")


def test_written_lines_are_taken_once_they_are_complete(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    lines = WrittenLines(file)
    assert lines.complete() == b""
    file.write_bytes(b"one\ntw")
    assert [lines.complete(), lines.complete()] == [b"one\n", b""]
    file.write_bytes(b"one\ntwo\nthree")
    assert lines.complete() == b"two\n"


def test_a_file_that_is_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"one\ntwo\n")
    lines = WrittenLines(file)
    assert lines.complete() == b"one\ntwo\n"
    file.write_bytes(b"new\n")
    assert lines.complete() == b"new\n"


def test_of_a_long_file_the_end_is_read(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"x" * 3 * KEPT + b"\nlast\n")
    lines = WrittenLines(file)
    taken = lines.complete()
    assert len(taken) <= KEPT
    assert taken.endswith(b"x\nlast\n")
    with file.open("ab") as more:
        more.write(b"y" * 3 * KEPT)
    assert lines.complete() == b""
    with file.open("ab") as more:
        more.write(b"\nagain\n")
    assert lines.complete().endswith(b"y\nagain\n")


def test_links_and_special_files_have_no_lines(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret\n")
    beside = tmp_path / "scratch"
    beside.mkdir()
    link, pipe, folder = (beside / name for name in ("link", "pipe", "folder"))
    link.symlink_to(tmp_path / "secret")
    os.mkfifo(pipe)
    folder.mkdir()
    assert [WrittenLines(each).complete() for each in (link, pipe, folder)] == [b"", b"", b""]
