"""Archives from people nobody knows: good ones are read, each hostile kind is refused with a sentence."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios import archives
from scenarios.bundles import read_path, unpack_archive, unpack_upload
from scenarios.formats import parse_files
from scenarios.formats.parsed import ScenarioFileError

LINK = stat.S_IFLNK | 0o777
FIFO = stat.S_IFIFO | 0o644

ONE_CASE = "evalcases: [{id: first, expected_outcome: x, input_messages: [{role: user, content: Hi}]}]"


def zipped(*members, method=zipfile.ZIP_DEFLATED):
    """Return a zip of (name, content, mode) members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content, *mode in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            info.external_attr = (mode[0] if mode else 0o644) << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def tarred(*members, pack=gzip.compress):
    """Return a tar of (name, content) members; what isn't content is the type of a member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = content.encode(), "/etc/passwd"
                archive.addfile(info)
            else:
                info.size, info.mode = len(content), 0o755
                archive.addfile(info, io.BytesIO(content))
    return pack(buffer.getvalue())


def with_headers(kind, content, name="s/a.yaml"):
    """Return a tar that begins with one extended header."""
    header = tarfile.TarInfo("header")
    header.type, header.size = kind, len(content)
    padding = b"\0" * (-len(content) % tarfile.BLOCKSIZE)
    return header.tobuf(tarfile.USTAR_FORMAT) + content + padding + tarred((name, b"x"), pack=bytes)


HOSTILE_NAMES = {
    "absolute": ("/etc/passwd", "absolute-path"),
    "a drive": ("C:/x", "absolute-path"),
    "a home": ("~/x", "absolute-path"),
    "upwards": ("../../x", "upward-path"),
    "upwards inside": ("a/../../x", "upward-path"),
    "a backslash": ("..\\x", "backslash"),
    "a newline": ("a\nb", "bad-path"),
    "an empty step": ("a//b", "bad-path"),
    "long": ("a" * 401, "long-path"),
}
HOSTILE = {
    "a symlink in a zip": (zipped(("a", "/etc/passwd", LINK)), "link"),
    "a pipe in a zip": (zipped(("a", "", FIFO)), "not-regular"),
    "a symlink in a tar": (tarred(("a", tarfile.SYMTYPE.decode())), "link"),
    "a hard link": (tarred(("a", tarfile.LNKTYPE.decode())), "link"),
    "a device": (tarred(("a", tarfile.CHRTYPE.decode())), "not-regular"),
    "a pipe in a tar": (tarred(("a", tarfile.FIFOTYPE.decode())), "not-regular"),
    "the same path in other case": (zipped(("A", "1"), ("a", "2")), "same-path"),
    "a file that is a folder": (zipped(("a", "1"), ("a/b", "2")), "same-path"),
    "a zip bomb": (zipped(("a", b"\0" * (30 << 20))), "large-file"),
    "a gzip bomb": (gzip.compress(bytes(archives.MAX_TOTAL_BYTES + (8 << 20)), 1), "too-large"),
    "a large file": (tarred(("a", bytes(archives.MAX_FILE_BYTES + 1)), pack=bytes), "large-file"),
    "too many files": (zipped(*((f"{n}", "") for n in range(archives.MAX_MEMBERS + 1))), "too-many-files"),
    "nothing": (zipped(), "no-files"),
    "cut off": (zipped(("a", "x" * 1000))[:-30], "broken-archive"),
    "no archive": (b"PK\x03\x04 and no more", "broken-archive"),
    "a cut gzip": (tarred(("a", b"x"))[:-9], "broken-archive"),
}


def problem_of(data, name="s.zip"):
    with pytest.raises(ScenarioFileError) as caught:
        unpack_archive(name, data)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar.gz"])
@pytest.mark.parametrize(("path", "id"), HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
def test_it_refuses_paths_that_could_lead_out(pack, path, id):
    problem = problem_of(pack(("good.yaml", b"a: 1"), (path, b"x")))
    assert (problem.id, problem.where, problem.file) == (f"bundle/{id}", path, "s.zip")


@pytest.mark.parametrize(("data", "id"), HOSTILE.values(), ids=HOSTILE)
def test_it_refuses_hostile_archives(data, id):
    problem = problem_of(data)
    assert problem.id == f"bundle/{id}"
    assert problem.what.endswith(".")
    assert problem.fix.endswith(".")


def test_it_refuses_more_than_the_total():
    content = bytes(archives.MAX_FILE_BYTES)
    members = (archives.Member(f"{number}", content) for number in range(6))
    with pytest.raises(ScenarioFileError) as caught:
        archives.collect("s.zip", members)
    assert caught.value.problems[0].id == "bundle/too-large"


def test_it_refuses_a_packed_size_beyond_the_limit():
    assert problem_of(bytes(archives.MAX_ARCHIVE_BYTES + 1)).id == "bundle/large-archive"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["bzip2", "LZMA"])
def test_it_unpacks_no_method_without_a_limit(method):
    problem = problem_of(zipped(("a.yaml", bytes(1000)), method=method))
    assert (problem.id, problem.where) == ("bundle/compression", "a.yaml")


@pytest.mark.parametrize(
    "data",
    [
        with_headers(tarfile.XHDTYPE, b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"),
        with_headers(tarfile.GNUTYPE_SPARSE, b""),
    ],
    ids=["sparse", "old sparse"],
)
def test_it_refuses_files_with_holes(data):
    assert problem_of(data).id in ("bundle/broken-archive", "bundle/not-regular")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE], ids=["entry", "global"])
def test_ordinary_extended_headers_are_read(kind):
    bundle = unpack_archive("s.tar", with_headers(kind, b"52 comment=" + b"a" * 40 + b"\n"))
    assert bundle.files == {"a.yaml": b"x"}


def test_it_refuses_an_encrypted_zip():
    data = bytearray(zipped(("a", "secret")))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert problem_of(bytes(data)).id == "bundle/broken-archive"


@pytest.mark.parametrize(
    "data",
    [zipped(("s/a.yaml", b"x"), ("s/b/c", b"y", 0o755)), tarred(("./s/a.yaml", b"x"), ("./s/b/c", b"y"))],
)
def test_the_folder_at_the_top_is_the_bundle(data):
    bundle = unpack_archive("upload-7.zip", data)
    assert (bundle.name, bundle.files) == ("s", {"a.yaml": b"x", "b/c": b"y"})
    assert "b/c" in bundle.executables


def test_without_a_top_folder_the_archive_names_the_bundle():
    bundle = unpack_archive("tasks.tar.gz", tarred(("a.yaml", b"x"), ("b/c", b"y"), pack=bytes))
    assert (bundle.name, sorted(bundle.files)) == ("tasks", ["a.yaml", "b/c"])


def test_files_of_file_managers_are_ignored():
    data = zipped(
        ("s/a.yaml", "x"), ("__MACOSX/s/._a.yaml", "x"), ("s/.DS_Store", "x"), ("s/.git/config", "x")
    )
    assert unpack_archive("x.zip", data).files == {"a.yaml": b"x"}


def test_an_upload_is_an_archive_or_a_file_alone():
    assert unpack_upload("x.bin", zipped(("s/a.yaml", "x"))).files == {"a.yaml": b"x"}
    bundle = unpack_upload("C:\\home\\weather.yaml", b"a: 1")
    assert (bundle.name, bundle.files) == ("weather", {"weather.yaml": b"a: 1"})


@settings(max_examples=200)
@given(
    st.sampled_from([zipped(("s/a.yaml", "x" * 50)), tarred(("s/a.yaml", b"x" * 50), pack=bytes)]), st.data()
)
def test_no_damage_raises_anything_else(archive, data):
    at = data.draw(st.integers(0, min(len(archive), 700) - 1))
    damaged = archive[:at] + data.draw(st.binary(max_size=8)) + archive[at + data.draw(st.integers(0, 8)) :]
    try:
        assert unpack_archive("s.zip", damaged).files
    except ScenarioFileError as error:
        assert error.problems


def test_a_file_alone_is_decoded_once(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text(ONE_CASE)
    bundle = read_path(file)
    assert list(bundle.decoded) == ["one.yaml"]
    # The bytes are another case: what was decoded before is what counts.
    other = {"one.yaml": ONE_CASE.replace("first", "second").encode()}
    (suite,) = parse_files(other, name="one", decoded=bundle.decoded)
    assert [spec.key for spec in suite.scenarios] == ["first"]
