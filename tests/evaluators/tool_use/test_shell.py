from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.tool_use.shell import read_line, split_commands, without_ansi
from tests.linear_time import assert_linear_time, quarter


def lines(text: str) -> list[str]:
    return [part.line for part in split_commands(text)]


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
        pytest.param("diff <(t a) <(t b)", ["t a", "t b", "diff <(t a) <(t b)"], id="process substitutions"),
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


def test_a_shell_that_runs_a_file_is_seen_as_both() -> None:
    (part,) = split_commands("bash x.sh -c y")
    assert [stage.line for stage in part.stages] == ["bash x.sh -c y", "x.sh -c y"]


def test_it_takes_commands_out_of_loops() -> None:
    assert lines("for i in 1 2; do t add $i; done") == ["t add '$i'"]


def test_a_here_document_belongs_to_its_command() -> None:
    parts = split_commands("t import <<'EOF' && t list\nt add x\nEOF\nt show")
    assert [part.line for part in parts] == ["t import <<EOF t add x", "t list", "t show"]


def test_two_here_documents_make_two_lines() -> None:
    assert lines("t import <<E\na\nE") != lines("t import <<E\nb\nE")


def test_a_here_document_without_end_takes_the_rest() -> None:
    assert len(split_commands("t import <<EOF\nt add\nt list")) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("for f in $(t list); do t add $f; done", ["t list", "t add '$f'"], id="for"),
        pytest.param("for ((i=0;i<3;i++)); do t add; done", ["t add"], id="for of numbers"),
        pytest.param("select f in `t list`; do t add; done", ["t list", "t add"], id="select"),
        pytest.param(
            "case $(t get) in a) t x;; (b|c) t y;; esac; t z", ["t get", "t x", "t y", "t z"], id="case"
        ),
        pytest.param("x=$(case a in a) t x;; esac); t y", ["t x", "t y"], id="case in a substitution"),
        pytest.param('[[ $(t get) == "$(t two)" ]] && t x', ["t get", "t two", "t x"], id="test"),
        pytest.param("while read x; do t x; done < <(t list)", ["t list", "t x"], id="redirected loop"),
        pytest.param("{ t a; } > >(t log)", ["t log", "t a"], id="redirected group"),
        pytest.param("cat <<E\n$(t a) it's `t b`\nE\nt c", ["t a", "t b", "t c"], id="here-document"),
        pytest.param("cat <<'E'\n$(t a)\nE\nt c", ["t c"], id="quoted here-document"),
        pytest.param("cat <<E\n\\$(t a)\nE\nt c", ["t c"], id="escaped in a here-document"),
        pytest.param("bash <<E\necho $(t a)\nE", ["t a"], id="here-document of a shell, once"),
        pytest.param("a=(-q t x $(t a)); t b", ["t a", "t b"], id="array"),
        pytest.param("echo $((1 << 2)) $(( $(t a) + 1 ))\nt b", ["t a", "t b"], id="arithmetic"),
        pytest.param('echo "${x:-$(t a)}" && t b', ["t a", "t b"], id="default value"),
        pytest.param("x=$(t a # it's\n); t b", ["t a", "t b"], id="comment in a substitution"),
        pytest.param("x=$(f() { t a; }; f); t b", ["t a", "t b"], id="function in a substitution"),
        pytest.param("echo $'it\\'s' && t a", ["t a"], id="ANSI-C quotes"),
        pytest.param("f () { t $1; }; f a", ["t a"], id="function with a blank"),
    ],
)
def test_it_finds_commands_in_every_substitution(text: str, expected: list[str]) -> None:
    assert [line for line in lines(text) if line.startswith("t ")] == expected


@pytest.mark.parametrize("delimiter", ["'EOF'", "EOF"])
@pytest.mark.parametrize("body", ["don't", 'a " b', "a) b", "(a", "it's (a"])
def test_quotes_of_a_here_document_in_a_substitution_mean_nothing(delimiter: str, body: str) -> None:
    line = f't commit -m "$(cat <<{delimiter}\n{body}\nEOF\n)" && t push && t pr'
    found = split_commands(line)
    assert [part.words[:2] for part in found if part.words[0] == "t"][1:] == [("t", "push"), ("t", "pr")]
    assert found[0].line == f"cat <<EOF {body}"


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'f() { t a; }'; f",
        "f() { t a; }; bash -c f",
        "(f() { t a; }); f",
        "x=$(f() { t a; }); f",
        "x=$(alias f=t); f a",
        "echo <(f() { t a; }); f",
        "f() { t a; }; ssh host f",
    ],
)
def test_a_name_lives_only_in_its_own_shell(text: str) -> None:
    assert not any(line.startswith("t ") for line in lines(text))


def test_a_subshell_knows_the_names_around_it() -> None:
    assert lines("f() { t a; }; (f); x=$(f); eval f") == ["t a"] * 3


def test_a_shell_runs_its_here_document() -> None:
    assert lines("bash <<'EOF'\nt add\nt list\nEOF") == ["t add", "t list"]


def test_a_substitution_is_a_separate_command() -> None:
    parts = split_commands('t add "$(t show | head)"')
    assert [part.stages[-1].text for part in parts] == ["t show", "head", "t add $()"]


def test_letters_of_any_alphabet_need_no_quotes() -> None:
    assert lines("t créer née") == ["t créer née"]


@pytest.mark.parametrize(
    "text",
    [
        "npx t list",
        "npx -y -p t@1 t list",
        "npm exec -- t list",
        "pnpm exec t list",
        "pnpm dlx t list",
        "bunx t list",
        "yarn t list",
        "yarn run t list",
        "uvx t list",
        "uv run t list",
        "uv run --with rich t list",
        "uv tool run t list",
        "poetry run t list",
        "pipx run --spec t t list",
        "python -m t list",
        "python3.12 -W ignore -m t list",
        "docker exec -i box t list",
        "docker run --rm -v a:b image t list",
        "docker compose exec web t list",
        "docker compose -f x.yaml exec -T web t list",
        "kubectl exec -n x pod -c c -- t list",
        "kubectl -n x exec pod -- t list",
        "ssh -p 22 me@host t list",
        "ssh host 't list'",
        "nice -n 5 t list",
        "stdbuf -oL -e L t list",
        "eval 't list'",
        "setsid nohup t list",
        "find . -name x -exec t list ';'",
        "xargs -n1 -P 4 t list",
        "t.exe list",
        r"C:\tools\t.exe list",
        r".\t.exe list",
        "powershell -Command 't list'",
        "cmd /c t list",
        "T=./bin/t; $T list",
        'T="python -m t"; $T list',
        "B=./bin; $B/t list",
        "export T=t\n${T} list",
        "alias x=t; x list",
        'f() { t "$@"; }; f list',
        "function f { t $1; }\nf list",
        "time t list",
        "( t list )",
        "{ t list; }",
        "if t list; then :; fi",
        "while t list; do break; done",
        "sudo -u me docker exec box sh -c 'cd /x && t list'",
    ],
)
def test_it_opens_launchers_and_follows_names(text: str) -> None:
    assert "t list" in lines(text)


def test_an_image_may_be_the_tool() -> None:
    (part,) = split_commands("docker run --rm ghcr.io/me/t:1.2 list")
    assert [stage.words for stage in part.stages][1:] == [("t", "list"), ("list",)]


@pytest.mark.parametrize("text", ["command -v t", "which t", "type t", "python -c 't list'", "node -e 't()'"])
def test_it_opens_nothing_that_runs_nothing(text: str) -> None:
    assert all(part.words[0] != "t" for part in split_commands(text))


def test_a_function_that_calls_itself_ends() -> None:
    assert lines("f() { f; f; }; f") == ["f", "f"]


def test_a_definition_runs_nothing() -> None:
    assert lines("f() { t list; }") == []


def test_one_shell_remembers_what_it_defined() -> None:
    first = read_line("T=./bin/t; alias x='t -q'; f() { t show $1; }")
    found = [read_line(line, first.definitions).segments[0].line for line in ("$T list", "x list", "f a")]
    assert found == ["t list", "t -q list", "t show a"]


@given(st.text(alphabet=st.sampled_from("ab '\"$()`\\\n;&|<>#-=E\x1b[0m"), max_size=60))
def test_it_never_refuses_a_line(text: str) -> None:
    for part in split_commands(text):
        assert part.words


@given(st.lists(st.sampled_from(["t add", "t 'x y'", "ls -l", "cat f"]), min_size=1, max_size=6))
def test_it_finds_every_joined_command(commands: list[str]) -> None:
    assert lines(" && ".join(commands)) == commands


@pytest.mark.sampled(6)
@pytest.mark.hostile
@pytest.mark.parametrize(
    "text",
    [
        "$(" * 20_000,
        '"$(' * 20_000,
        "`\"'" * 20_000,
        "<<a " * 5_000,
        "((" * 20_000,
        '"$(a)"' * 40_000,
        "a@" + "a" * 50_000,
        "env -i " * 30_000 + "git status",
        "env " + "-i " * 60_000 + "git status",
        "A=1 " * 60_000 + "git status",
        "sudo -u x " * 20_000 + "git status",
        "timeout 5 " * 30_000 + "git status",
        "time " * 60_000 + "git status",
        "bash -c '" + "env -i " * 30_000 + "git status'",
        "if " * 60_000,
        "{ " * 60_000,
        "a() { b; b; }; b() { c; c; }; c() { d; d; }; d() { a; a; }; a; " * 200,
        "for i in x; do " * 20_000,
        "a && " * 50_000,
        "x=$x$x; " * 20_000,
        "a=(" * 5_000,
        "$(a=(" * 20_000,
        "case x in a) " * 5_000,
        "$(case x in a) " * 10_000,
        '"$(cat <<E\n' * 20_000,
        "cat <<E\n$(a" * 20_000,
        "for i in $(" * 10_000,
        "[[ $( " * 20_000,
        "((" * 20_000 + "))" * 20_000,
        "$((1+" * 20_000,
        "$'" * 30_000,
        "(f() { a; }); " * 10_000,
        "f () " * 20_000,
    ],
)
def test_hostile_lines_take_linear_time(text: str) -> None:
    assert_linear_time(split_commands, quarter(text), text)


def test_it_removes_titles_and_colours() -> None:
    assert without_ansi("\x1b]0;title\x07a\x1b[1;31mb\x1b[K") == "ab"
