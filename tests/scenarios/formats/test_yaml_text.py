"""YAML and JSON of every bad kind are refused with their line; good ones keep their lines."""

import time
from itertools import pairwise
from pathlib import Path

import pytest

from scenarios.formats.parsed import ScenarioFileError
from scenarios.formats.text_files import MAX_BYTES, read_json, read_toml
from scenarios.formats.yaml_text import read_yaml

FILES = Path(__file__).parents[2] / "files/cases"
LETTERS = "abcdefghi"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 10)}]\n" for old, new in pairwise(LETTERS)
)
MERGE_BOMB = "a: &a {k: v}\n" + "".join(
    f"{new}: &{new} {{<<: [{','.join(['*' + old] * 10)}]}}\n" for old, new in pairwise(LETTERS)
)

BAD_YAML = {
    "nothing": ("", 1, "format/empty-file"),
    "only spaces": ("  \n\n", 1, "format/empty-file"),
    "only a comment": ("# later\n", 1, "format/empty-file"),
    "only null": ("~\n", 1, "format/empty-file"),
    "too large": ("x" * (MAX_BYTES + 1), 1, "format/too-large"),
    "latin-1": (b"a: 1\nb: caf\xe9\n", 2, "format/not-text"),
    "a control character": ("a: 1\nb: \x01\n", 2, "format/not-yaml"),
    "an open bracket": ("a: 1\nb: [1\nc: 2\n", 3, "format/not-yaml"),
    "two colons": ("a: 1\nb: c: d\n", 2, "format/not-yaml"),
    "an unknown alias": ("a: 1\nb: *nobody\n", 2, "format/not-yaml"),
    "a list as key": ("a: 1\n? [b]\n: c\n", 2, "format/not-yaml"),
    "a number beyond all bounds": ("a: 1\nb: 1e999\n", 2, "format/not-yaml"),
    "a merge of text": ("a: 1\n<<: text\n", 2, "format/not-yaml"),
    "a tab": ("a:\n\tb: 1\n", 2, "format/tab"),
    "a tab after spaces": ("a:\n  b: 1\n  \tc: 1\n", 3, "format/tab"),
    "a key twice": ("a: 1\nb:\n  c: 1\n  c: 2\n", 4, "format/duplicate-key"),
    "an alias of itself": ("a: 1\nb: &b [*b]\n", 2, "format/alias-of-itself"),
    "aliases of aliases": (BOMB, 6, "format/aliases-too-large"),
    "merges of merges": (MERGE_BOMB, 7, "format/aliases-too-large"),
    "a long text often": (f"a: &a {'x' * 3000}\nb: [{'*a, ' * 700}x]", 2, "format/aliases-too-large"),
    "deep brackets": ("[" * 100_000, 1, "format/too-deep"),
    "deep mappings": ("".join(" " * n + "a:\n" for n in range(60)), 41, "format/too-deep"),
    "two documents": ("a: 1\n---\nb: 2\n", 2, "format/several-documents"),
    "a python object": ("a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "format/yaml-tag"),
    "a binary tag": ("b: !!binary aGk=\n", 1, "format/yaml-tag"),
    "a NUL": ('a: 1\nb: "\\0"\n', 2, "format/bad-character"),
}

BAD_JSON = {
    "cut off": ('{\n"a": 1', 2, "format/not-json"),
    "NaN": ("NaN", 1, "format/not-json"),
    "a number beyond all bounds": ("[1e999]", 1, "format/not-json"),
    "a number of 5,000 digits": ("1" * 5000, 1, "format/not-json"),
    "null": ("null", 1, "format/empty-file"),
    "a key twice": ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', 3, "format/duplicate-key"),
    "deep": ("[\n" * 50 + "]" * 50, 41, "format/too-deep"),
    "very deep": ("[" * 100_000, 1, "format/too-deep"),
    "half a surrogate pair": ('{"a":\n"\\ud800"}', 2, "format/bad-character"),
    "a NUL": ('{"a":\n"\\u0000"}', 2, "format/bad-character"),
}


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


@pytest.mark.parametrize(("text", "line", "id"), BAD_YAML.values(), ids=BAD_YAML)
def test_bad_yaml_is_refused_with_its_line(text, line, id):
    with pytest.raises(ScenarioFileError) as caught:
        read_yaml(as_bytes(text), "s.yaml")
    (problem,) = caught.value.problems
    assert (problem.id, problem.line, problem.file) == (id, line, "s.yaml")
    assert problem.what.endswith(".")
    assert problem.fix.endswith(".")


@pytest.mark.parametrize(("text", "line", "id"), BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_is_refused_with_its_line(text, line, id):
    with pytest.raises(ScenarioFileError) as caught:
        read_json(as_bytes(text), "s.json")
    (problem,) = caught.value.problems
    assert (problem.id, problem.line) == (id, line)


@pytest.mark.parametrize(("text", "line"), [('a = 1\nb = "\n', 2), (f"a = {'1' * 5000}\n", 1)])
def test_bad_toml_is_refused_with_its_line(text, line):
    with pytest.raises(ScenarioFileError) as caught:
        read_toml(text.encode(), "c.toml")
    assert (caught.value.problems[0].id, caught.value.problems[0].line) == ("format/not-toml", line)


@pytest.mark.parametrize("part", ["a", '"b"', "'c'", 'd . "\\""'])
def test_toml_names_of_many_parts_are_refused(part):
    name = ".".join([part] * 20_000)
    for text in (f"[{name}]", f"{name} = 1", f"a = {{{name} = 1}}"):
        with pytest.raises(ScenarioFileError) as caught:
            read_toml(f"x = 1\n{text}\n".encode(), "c.toml")
        assert (caught.value.problems[0].id, caught.value.problems[0].line) == ("format/too-deep", 2)


def test_toml_names_and_texts_of_some_parts_are_read():
    name = ".".join("abcdefgh")
    text = f"[{name}]\n{name} = '{'.'.join(['ab'] * 39)}'\ntext = '{'Some words. ' * 50}'\n"
    assert read_toml(text.encode(), "c.toml").positions.line((*"abcdefgh", *"abcdefgh")) == 2


def test_every_duplicate_key_is_reported():
    with pytest.raises(ScenarioFileError) as caught:
        read_yaml(b"a: 1\na: 2\nb: {c: 1, c: 2}\n", "s.yaml")
    assert [problem.where for problem in caught.value.problems] == ["a", "b.c"]


WORDS = {
    "no is text": ("no", "no"),
    "on is text": ("on", "on"),
    "a date is text": ("2024-01-01", "2024-01-01"),
    "a time is text": ("12:30:00", "12:30:00"),
    "a leading zero is decimal": ("010", 10),
    "octal": ("0o17", 15),
    "hexadecimal": ("0xff", 255),
    "true": ("True", True),
    "empty is null": ("", None),
    "a float": ("-1.5e3", -1500.0),
    "infinity is text": (".inf", ".inf"),
    "a number of 400 digits is text": ("1" * 400, "1" * 400),
    "quoted": ('"1"', "1"),
    "a text tag": ("!!str 1", "1"),
}


@pytest.mark.parametrize(("written", "value"), WORDS.values(), ids=WORDS)
def test_scalars_follow_yaml_1_2(written, value):
    found = read_yaml(f"a: {written}\nb: 1\n".encode(), "s.yaml").value["a"]
    assert (found, type(found)) == (value, type(value))


def test_keys_are_text_and_merges_work():
    document = read_yaml(b"m: &m {x: 1, 2: b}\nk:\n  <<: *m\n  x: 3\n", "s.yaml")
    assert document.value == {"m": {"x": 1, "2": "b"}, "k": {"x": 3, "2": "b"}}


def test_an_alias_bomb_is_refused_before_it_expands():
    bomb = (FILES / "49/s.yaml").read_bytes()
    began = time.process_time()
    with pytest.raises(ScenarioFileError, match="aliases repeat more than"):
        read_yaml(bomb, "s.yaml")
    assert time.process_time() - began < 1


def test_lines_are_known_below_an_alias_at_its_own_key():
    document = read_yaml(b"a: &a\n  b: 1\nc: *a\n", "s.yaml")
    assert document.positions.line(("a", "b")) == 2
    assert document.positions.line(("c", "b")) == 3
    assert document.positions.line(("nowhere", 7)) == 1


def test_json_with_tabs_has_its_lines():
    document = read_json(b'{\n\t"a": [1,\n\t\t{"b\\"": 2}],\n\t"c": "x"\n}', "s.json")
    assert document.value == {"a": [1, {'b"': 2}], "c": "x"}
    lines = [document.positions.line(at) for at in (("a",), ("a", 0), ("a", 1), ("a", 1, 'b"'), ("c",))]
    assert lines == [2, 2, 3, 3, 4]


def test_toml_keys_have_their_lines():
    document = read_toml(b'top = 1\n[tools.git]\nmodels = ["a"]\n"odd key" = 2\n', "c.toml")
    places = [("top",), ("tools", "git"), ("tools", "git", "models"), ("tools", "git", "odd key")]
    assert [document.positions.line(at) for at in places] == [1, 2, 3, 4]


def test_a_byte_order_mark_is_not_content():
    assert read_yaml(b"\xef\xbb\xbfa: 1\n", "s.yaml").value == {"a": 1}
