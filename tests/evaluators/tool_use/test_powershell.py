"""Lines of PowerShell: split outside its quotes, with ends only where they are certain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.tool_use.shell import read_line
from evaluators.tool_use.shell_ends import ends_of
from tests.linear_time import assert_linear_time, quarter


def ends(text: str, code: int = 0) -> list[str]:
    """Return the commands of `t` with their exit codes; `?` is unknown."""
    line = read_line(text, is_powershell=True)
    own = [n for n, part in enumerate(line.segments) if part.words[0] == "t"]
    found = ends_of(line, own, code, "").items()
    return [f"{line.segments[n].line} {'?' if end.code is None else end.code}" for n, end in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("t add a", ["t add a 3"], id="alone"),
        pytest.param('t rm a; Write-Host "-"; t list', ["t rm a ?", "t list 3"], id="the last of several"),
        pytest.param("t a\r\nt b", ["t a ?", "t b 3"], id="lines"),
        pytest.param("t a `\n  --x", ["t a --x 3"], id="continued"),
        pytest.param("t a 2>&1 # t b", ["t a 2>&1 3"], id="comment"),
        pytest.param("<# t a; #> t b", ["t b 3"], id="block comment"),
        pytest.param(
            """t a 'it''s; t b' "x `"; t c" """, ["""t a 'it'"'"'s; t b' 'x "; t c' 3"""], id="quotes"
        ),
        pytest.param("t a @'\nit's; t b\n'@\nt c", ["""t a 'it'"'"'s; t b' ?""", "t c 3"], id="here-string"),
        pytest.param(r"& 'C:\my tools\t.exe' a", ["t a 3"], id="call operator"),
        pytest.param(r"$t = 'C:\my tools\t.exe'; & $T a", ["t a 3"], id="variable"),
        pytest.param(r".\t.exe a", ["t a 3"], id="path"),
        pytest.param("$x = t a", ["t a ?"], id="assigned"),
        pytest.param("t a | Select-Object -First 1", ["t a ?"], id="pipeline"),
        pytest.param("cd x && t a", ["t a ?"], id="and"),
        pytest.param("if ($?) { t a } else { t b }", ["t a ?", "t b ?"], id="blocks"),
        pytest.param("$a | % { t $_ }; t b", ["t '$_' ?", "t b ?"], id="behind a block"),
        pytest.param("t a; exit 3", ["t a ?"], id="exit"),
        pytest.param("Write-Host (t a)", ["t a ?"], id="expression"),
        pytest.param('"t a"', [], id="a string is printed"),
        pytest.param("npx t a", ["t a 3"], id="launcher"),
    ],
)
def test_it_splits_and_knows_few_ends(text: str, expected: list[str]) -> None:
    assert ends(text, 3) == expected


def test_a_bash_line_may_start_powershell() -> None:
    line = read_line("""powershell.exe -NoProfile -Command "t a 'it''s'; t b" """)
    assert [part.line for part in line.segments] == ["""t a 'it'"'"'s'""", "t b"]


@given(st.text(alphabet=st.sampled_from("ab '\"`@$&#<>\n;|(){}="), max_size=60))
def test_it_never_refuses_a_line(text: str) -> None:
    assert all(part.words for part in read_line(text, is_powershell=True).segments)


@pytest.mark.hostile
@pytest.mark.parametrize("text", ["@'\n", "<# ", "'", '"', "`\n", "& ", "$x = ", "(", "@'\na\n' ", '"`"'])
def test_hostile_lines_take_linear_time(text: str) -> None:
    long = text * (60_000 // len(text))
    assert_linear_time(lambda line: read_line(line, is_powershell=True), quarter(long), long)
