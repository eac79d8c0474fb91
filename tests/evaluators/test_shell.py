from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.shell import exit_codes, segments, without_ansi


def lines(text: str) -> list[str]:
    return [part.line for part in segments(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("t   add  x", ["t add x"], id="whitespace"),
        pytest.param("""t add 'a b' "c" """, ["t add 'a b' c"], id="quotes are canonical"),
        pytest.param('t add "say \\"hi\\""', ["""t add 'say "hi"'"""], id="escapes in double quotes"),
        pytest.param("t add 'a && b; c | d'", ["t add 'a && b; c | d'"], id="operators in quotes"),
        pytest.param("/usr/local/bin/t add", ["t add"], id="path cut to its name"),
        pytest.param("a && b || c | d; e & f\ng", list("abcdefg"), id="joiners"),
        pytest.param("a |& b", ["a", "b"], id="pipe of both streams"),
        pytest.param("a \\\n  b", ["a b"], id="continued line"),
        pytest.param("t add # why", ["t add"], id="comment"),
        pytest.param("t add a#b", ["t add 'a#b'"], id="no comment within a word"),
        pytest.param("# t add", [], id="only a comment"),
        pytest.param("t list > out.txt 2>&1", ["t list >out.txt 2>&1"], id="redirections"),
        pytest.param("t list &> log", ["t list &>log"], id="redirection of both"),
        pytest.param("(cd x && t add)", ["cd x", "t add"], id="subshell"),
        pytest.param("f(x) y", ["'f(x)' y"], id="parentheses in prose"),
        pytest.param("don't t add", ["""'don'"'"'t' t add"""], id="open single quote"),
        pytest.param('say "t add', ["""say '"t' add"""], id="open double quote"),
        pytest.param("$ t add", ["t add"], id="dollar prompt"),
        pytest.param("> t add", ["t add"], id="angle prompt"),
        pytest.param("me@host:~/x$ t add", ["t add"], id="user prompt"),
        pytest.param("\x1b[32mt add\x1b[0m", ["t add"], id="colours"),
        pytest.param("t add\r", ["t add"], id="carriage return"),
        pytest.param("", [], id="nothing"),
        pytest.param(" ; ; ", [], id="only joiners"),
    ],
)
def test_it_splits_and_normalises(text: str, expected: list[str]) -> None:
    assert lines(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "bash -lc './t add'",
        '/bin/bash -lc "t add"',
        "sh -c 't add'",
        "bash -l -c 't add'",
        "env A=1 B=2 t add",
        "env -u A t add",
        "timeout 5 t add",
        "timeout -s KILL 5s t add",
        "sudo t add",
        "sudo -u me t add",
        "A=1 B='x y' t add",
        "nohup t add",
        "time t add",
        "sudo env A=1 timeout 3 bash -c 'B=2 t add'",
        "! t add",
    ],
)
def test_it_opens_wrappers(text: str) -> None:
    assert lines(text) == ["t add"]


def test_it_opens_shells_in_the_middle_of_a_line() -> None:
    assert lines("cd x && bash -c 'a; b' | c") == ["cd x", "a", "b", "c"]
    assert [part.joiner for part in segments("cd x && bash -c 'a; b' | c")] == ["&&", ";", "|", ""]


def test_it_keeps_a_shell_that_runs_a_file() -> None:
    assert lines("bash x.sh -c y") == ["bash x.sh -c y"]


def test_it_takes_commands_out_of_loops() -> None:
    assert lines("for i in 1 2; do t add $i; done")[1] == "t add '$i'"


def test_a_here_document_ends_before_the_next_command() -> None:
    parts = segments("t import <<'EOF' && t list\nt add x\nEOF\nt show")
    assert [part.text for part in parts] == ["t import <<", "t list", "t show"]
    assert "t add x" in parts[1].line


def test_two_here_documents_make_two_lines() -> None:
    assert lines("t import <<E\na\nE") != lines("t import <<E\nb\nE")


def test_a_here_document_without_end_takes_the_rest() -> None:
    assert len(segments("t import <<EOF\nt add\nt list")) == 1


def test_a_substitution_is_a_separate_command() -> None:
    parts = segments('t add "$(t show | head)"')
    assert [(part.text, part.detached) for part in parts] == [
        ("t show", True),
        ("head", True),
        ("t add $()", False),
    ]


def test_an_assigned_substitution_ends_the_line() -> None:
    parts = segments("id=$(t add x)")
    assert [(part.line, part.detached) for part in parts] == [("t add x", False)]
    assert exit_codes(parts, [0], 3) == {0: 3}


U = None


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param("t a && t b", 0, [0, 0], id="success through and"),
        pytest.param("t a && t b", 2, [U, 2], id="failure through and"),
        pytest.param("cd x && t a && ls", 2, [2], id="last of the tool through and"),
        pytest.param("t a; t b", 0, [U, 0], id="success after semicolon"),
        pytest.param("t a; t b", 1, [U, 1], id="failure after semicolon"),
        pytest.param("t a; ls", 1, [U], id="another's after semicolon"),
        pytest.param("t a\nt b", 1, [U, 1], id="newline"),
        pytest.param("t a;", 1, [1], id="trailing semicolon"),
        pytest.param("t a | head", 0, [U], id="before a pipe"),
        pytest.param("cat x | t a", 1, [1], id="behind a pipe"),
        pytest.param("cat x | head && t a", 1, [1], id="pipe before"),
        pytest.param("t a || true", 0, [U], id="before or"),
        pytest.param("ls || t a", 1, [U], id="behind or"),
        pytest.param("t a || ls; t b", 1, [U, 1], id="or in an earlier statement"),
        pytest.param("t a &", 0, [U], id="in the background"),
        pytest.param("bash -c 't a; t b'", 4, [U, 4], id="within a shell"),
        pytest.param("echo $(t a)", 0, [U], id="substitution"),
        pytest.param("t a && t b", None, [U, U], id="nothing known"),
    ],
)
def test_it_assigns_the_exit_code_of_a_line(text: str, code: int | None, expected: list[int | None]) -> None:
    parts = segments(text)
    own = [n for n, part in enumerate(parts) if part.words[0] == "t"]
    assert list(exit_codes(parts, own, code).values()) == expected


@given(st.text(alphabet=st.sampled_from("ab '\"$()`\\\n;&|<>#-=E\x1b[0m"), max_size=60))
def test_it_never_refuses_a_line(text: str) -> None:
    for part in segments(text):
        assert part.words


@given(st.lists(st.sampled_from(["t add", "t 'x y'", "ls -l", "cat f"]), min_size=1, max_size=6))
def test_it_finds_every_joined_command(commands: list[str]) -> None:
    assert lines(" && ".join(commands)) == commands


@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        "$(" * 20_000,
        '"$(' * 20_000,
        "`\"'" * 20_000,
        "<<a " * 5_000,
        "((" * 20_000,
        '"$(a)"' * 60_000,
        "a@" + "a" * 50_000,
        "env -i " * 30_000 + "git status",
        "env " + "-i " * 60_000 + "git status",
        "A=1 " * 60_000 + "git status",
        "sudo -u x " * 20_000 + "git status",
        "timeout 5 " * 30_000 + "git status",
        "time " * 60_000 + "git status",
        "bash -c '" + "env -i " * 30_000 + "git status'",
    ],
)
def test_hostile_lines_take_linear_time(text: str) -> None:
    started = time.thread_time()
    segments(text)
    assert time.thread_time() - started < 1


def test_it_removes_titles_and_colours() -> None:
    assert without_ansi("\x1b]0;title\x07a\x1b[1;31mb\x1b[K") == "ab"
