"""Commands of targets: what they are given, and what is kept of what they print."""

from __future__ import annotations

import sys

import pytest

from runs.errors import ProviderError
from runs.targets.providers.recent_lines import PrintedLines
from tests.runs.processes import ENV, open_descriptors, run

pytestmark = pytest.mark.one_database


def test_it_works(tmp_path):
    result = run("echo out; echo err >&2; exit 3", tmp_path)
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert sorted(result.output.split()) == [b"err", b"out"]
    assert result.error == ""


def test_it_takes_a_list_of_arguments_without_a_shell(tmp_path):
    assert (
        run([sys.executable, "-c", "import sys; print(sys.argv[1])", "$HOME"], tmp_path).stdout == b"$HOME\n"
    )


def test_it_keeps_bytes_that_are_not_text(tmp_path):
    assert run(r"printf '\377\376\000x'", tmp_path).stdout == b"\xff\xfe\x00x"


def test_it_gives_the_command_only_the_environment_that_is_passed(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKERS_SECRET", "not for agents")
    output = run("env", tmp_path, env={"PATH": ENV["PATH"], "GIVEN": "yes"}).stdout.decode()
    assert "GIVEN=yes" in output
    assert "WORKERS_SECRET" not in output


def test_it_feeds_more_than_a_pipe_holds_without_a_deadlock(tmp_path):
    text = b"0123456789abcdef" * 200_000
    assert run("cat", tmp_path, stdin=text).stdout == text


def test_it_does_not_mind_a_command_that_leaves_its_input_unread(tmp_path):
    assert run("exit 0", tmp_path, stdin=b"x" * 1_000_000).exit_code == 0


def test_it_closes_the_input_of_a_command_that_gets_none(tmp_path):
    assert run("cat", tmp_path).exit_code == 0


def test_it_keeps_head_and_tail_of_a_long_output(tmp_path):
    result = run("echo first; seq 100000; echo last", tmp_path, output_limit=1000)
    assert result.truncated
    assert result.stdout.startswith(b"first\n")
    assert result.stdout.endswith(b"last\n")
    assert b"bytes left out" in result.stdout
    assert len(result.stdout) < 1100


def test_it_hands_on_the_output_as_it_comes(tmp_path):
    printed, seen = PrintedLines(), []

    def look() -> bool:
        seen.extend(printed.complete().splitlines())
        return bool(seen)

    run("echo early; sleep 30", tmp_path, sinks=[printed], cancelled=look)
    assert seen == [b"early"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        pytest.param(["/no/such/program"], "there is no program /no/such/program", id="missing"),
        pytest.param(["/etc/passwd"], "/etc/passwd may not be executed", id="not executable"),
        pytest.param(["/bin/echo", "x" * 3_000_000], "longer than the system allows", id="too long"),
        pytest.param(["/bin/echo", "a\0b"], "null byte", id="NUL"),
    ],
)
def test_it_says_why_a_command_cannot_start(tmp_path, command, sentence):
    with pytest.raises(ProviderError, match="cannot start") as caught:
        run(command, tmp_path)
    assert sentence in str(caught.value)
    assert caught.value.kind == "start"
    assert str(caught.value).endswith(".")


def test_it_says_that_the_working_directory_is_missing(tmp_path):
    with pytest.raises(ProviderError, match=r"working directory .*/gone does not exist"):
        run("true", tmp_path / "gone")


def test_it_holds_no_descriptors_after_many_commands(tmp_path):
    run("true", tmp_path)
    before = open_descriptors()
    for _ in range(40):
        run("echo x", tmp_path, stdin=b"y")
        with pytest.raises(ProviderError):
            run(["/no/such/program"], tmp_path)
    # A thread of an earlier test may close its own meanwhile.
    assert open_descriptors() <= before
