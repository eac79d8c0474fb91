from __future__ import annotations

import pytest

from evaluators.tool_use.shell import read_line
from evaluators.tool_use.shell_ends import Ending, ends_of


def shown(ending: Ending) -> str:
    """Return an end in short: a code, F failed, U unknown, X did not run; + any number of times."""
    code = "F" if ending.failed and ending.code is None else "U" if ending.code is None else str(ending.code)
    return ("X" if not ending.ran else code) + "+" * ending.at_least


def ends(text: str, code: int | None, output: str | None = "") -> str:
    line = read_line(text)
    own = [n for n, part in enumerate(line.segments) if part.words[0] == "t"]
    return " ".join(shown(each) for each in ends_of(line, own, code, output).values())


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        pytest.param("t a", 3, "3", id="alone"),
        pytest.param("t a;", 1, "1", id="trailing semicolon"),
        pytest.param("t a && t b", 0, "0 0", id="success through and"),
        pytest.param("t a && t b", 2, "U 2", id="failure through and: one of both"),
        pytest.param("cd x && t a", 3, "3", id="cd fails with words only"),
        pytest.param("cd x 2>/dev/null && t a", 3, "3", id="cd whose words nobody sees"),
        pytest.param("make && t a", 2, "2", id="another before and"),
        pytest.param("cd x && t a && ls", 2, "U", id="not the last of and"),
        pytest.param("t a && echo done", 3, "3", id="echo never fails"),
        pytest.param("true && t a", 7, "7", id="true never fails"),
        pytest.param("false && t a", 1, "X", id="behind false"),
        pytest.param("false || t a", 7, "7", id="false or"),
        pytest.param("t a; t b", 0, "U 0", id="success after semicolon"),
        pytest.param("t a; t b", 1, "U 1", id="failure after semicolon"),
        pytest.param("t a; ls", 1, "U", id="another's after semicolon"),
        pytest.param("t a\nt b", 1, "U 1", id="newline"),
        pytest.param("t a | head", 0, "U", id="before a pipe"),
        pytest.param("cat x | t a", 1, "1", id="behind a pipe"),
        pytest.param("cat x | head && t a", 1, "1", id="filters never fail"),
        pytest.param("t a || true", 0, "U", id="or true"),
        pytest.param("t a || t b", 0, "U U", id="success of or"),
        pytest.param("t a || t b", 5, "F 5", id="failure of or: both failed"),
        pytest.param("ls || t a", 1, "1", id="behind or"),
        pytest.param("t a && t b || t c", 4, "U U 4", id="and, or"),
        pytest.param("t a || ls; t b", 1, "U 1", id="or in an earlier statement"),
        pytest.param("t a || exit 3; t b", 3, "U U", id="an exit with the same code"),
        pytest.param("t a || exit 3; t b", 4, "0 4", id="an exit with another code"),
        pytest.param("t a || exit 3; t b", 0, "0 0", id="an exit that did not happen"),
        pytest.param("f() { t $1; }; f a && f b", 3, "U 3", id="functions"),
        pytest.param("t a; exit $?", 4, "4", id="an exit that passes on"),
        pytest.param("t a &", 0, "U", id="in the background"),
        pytest.param("t a & t b", 2, "U 2", id="one in the background"),
        pytest.param("! t a", 0, "F", id="negated success"),
        pytest.param("! t a", 1, "0", id="negated failure"),
        pytest.param("bash -c 't a; t b'", 4, "U 4", id="within a shell"),
        pytest.param("(t a; t b) 2>&1", 4, "U 4", id="within a subshell"),
        pytest.param("(t a; t b) | tail", 0, "U U", id="a subshell in a pipe"),
        pytest.param("id=$(t a)", 3, "3", id="assigned substitution"),
        pytest.param("echo $(t a)", 0, "U", id="substitution"),
        pytest.param("set -o pipefail; t a | tail -5", 3, "3", id="pipefail with a filter"),
        pytest.param("set -euo pipefail\nt a | grep x\nt b", 0, "0 0", id="pipefail, errexit, success"),
        pytest.param("set -o pipefail; t a | grep x", 1, "U", id="pipefail with another that may fail"),
        pytest.param("set -e; t a; t b", 2, "U U", id="errexit, failure"),
        pytest.param("set -e; t a && ls; t b", 0, "U 0", id="errexit does not see and"),
        pytest.param("for i in 1 2; do t $i; done", 0, "U+", id="loop"),
        pytest.param("if t a; then t b; fi", 3, "0 3", id="if that fails took its branch"),
        pytest.param("if t a; then t b; fi", 0, "U U", id="if that succeeds"),
        pytest.param("seq 3 | xargs -n1 t", 0, "0+", id="xargs"),
        pytest.param("seq 3 | xargs -n1 t", 123, "U+", id="xargs in which one failed"),
        pytest.param("find . -exec t a ';'", 0, "U+", id="find"),
        pytest.param("find . -exec t a '{}' +", 0, "0+", id="find with plus"),
        pytest.param("timeout 1 t a", 124, "124", id="timeout"),
        pytest.param("docker run x t a", 125, "U", id="docker's own code"),
        pytest.param("ssh host t a", 3, "3", id="ssh"),
        pytest.param("t a && t b", None, "U U", id="nothing known"),
    ],
)
@pytest.mark.spec("llm-tool-test", "Error, retry and help counts, iteration ratio")
def test_an_end_follows_from_the_shells_rules(text: str, code: int | None, expected: str) -> None:
    assert ends(text, code) == expected


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        pytest.param('t a; echo "exit: $?"', "x\nexit: 2", "2", id="echo"),
        pytest.param("t a | tail -3; echo ${PIPESTATUS[0]}", "x\n4", "4", id="PIPESTATUS"),
        pytest.param("t a | t b; echo ${PIPESTATUS[@]}", "4 0", "4 0", id="PIPESTATUS of all"),
        pytest.param("t a; rc=$?; echo rc=$rc", "x\nrc=3", "3", id="variable"),
        pytest.param("t a | cat; rc=${PIPESTATUS[0]}; ls; echo rc=$rc", "rc=3", "3", id="variable of a part"),
        pytest.param("t a; printf 'code %d\\n' $?", "code 5", "5", id="printf"),
        pytest.param("t a; echo 1: $?; t b; echo 2: $?", "1: 0\n2: 3", "0 3", id="two"),
        pytest.param("t a; echo $?; t b; echo $?", "0\n3", "0 3", id="two alike"),
        pytest.param("t a; echo $?; t b; echo $?", "7\n0\n3", "U 3", id="a line too many"),
        pytest.param("t a; echo $? > f", "2", "U", id="hidden"),
        pytest.param("for i in 1; do t a; echo $?; done", "2", "U+", id="in a loop"),
        pytest.param("t a || echo FAILED", "x\nFAILED", "F", id="or text, shown"),
        pytest.param("t a || echo FAILED", "x", "0", id="or text, not shown"),
        pytest.param("t a && echo OK || echo FAILED", "FAILED", "F", id="and, or: failed"),
        pytest.param("t a && echo OK || echo FAILED", "OK", "0", id="and, or: passed"),
        pytest.param("t a && echo OK || echo FAILED", "OK\nFAILED", "U", id="and, or: cannot be"),
        pytest.param('t a || echo "failed: $?"', "failed: 4", "4", id="or with the code"),
        pytest.param("if t a; then echo yes; else echo no; fi", "no", "F", id="else"),
        pytest.param("if t a; then echo yes; else echo no; fi", "yes", "0", id="then"),
        pytest.param("cd /no && t a; t b", "sh: 1: cd: can't cd to /no", "X 0", id="cd failed"),
        pytest.param(
            "cd /no && t a", "bash: line 1: cd: /no: No such file or directory", "X", id="cd failed alone"
        ),
    ],
)
def test_an_end_may_stand_in_the_output(text: str, output: str, expected: str) -> None:
    code = 1 if text == "cd /no && t a" else 0
    assert ends(text, code, output) == expected


def test_the_last_of_and_is_not_blamed_if_another_reports_an_error() -> None:
    assert ends("make && t a", 2, "make: *** No targets.  Stop.") == "U"
    assert ends("foo && t a", 127, "bash: line 1: foo: command not found") == "U"


def test_without_output_cd_may_have_failed() -> None:
    assert ends("cd x && t a", 1, None) == "1"
