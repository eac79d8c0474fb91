"""aider's chat history: what ran, what was declined, and what the record doesn't say."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from evaluators.model import Transcript, Usage
from evaluators.tool_use.interaction import analyse
from evaluators.tool_use.tool import Tool
from evaluators.transcripts import parse
from evaluators.transcripts.sessions import IMPORTERS, parse_session_file
from evaluators.transcripts.sessions.session import Session

FILES = Path(__file__).parents[2] / "files"
HEAD = (
    "\n# aider chat started at 2026-11-01 10:00:00\n\n> Aider v0.86.2  \n> Model: m with diff edit format  \n"
)
QUESTION = "> Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: "


def chat(text: str) -> Transcript:
    return parse("aider", (HEAD + text).encode())


def ran(found: Transcript) -> list[str | None]:
    declined = {event.id for event in found.events if event.not_run}
    return [each.command for each in found.events if each.type == "tool_call" and each.id not in declined]


def find_declined(found: Transcript) -> list[str | None]:
    ids = {event.id for event in found.events if event.not_run}
    return [each.command for each in found.events if each.type == "tool_call" and each.id in ids]


def sessions(content: bytes) -> list[Session]:
    _, found, problems = parse_session_file(io.BytesIO(content), IMPORTERS)
    read = list(found)
    assert problems == []
    return read


def test_the_commands_of_a_real_chat_are_those_that_aider_ran() -> None:
    found = parse("aider", (FILES / "agent_programs/aider.md").read_bytes())
    assert ran(found) == [
        "./taskmgr --help",
        "./taskmgr creat Milk",
        "./taskmgr create Milk",
        "./taskmgr list",
        "./taskmgr purge",
    ]
    assert find_declined(found) == ["./taskmgr purge", "./taskmgr purge --yes"]
    # A failure is not in the record, so no command is counted as failed or as succeeded.
    counted = analyse(found, Tool(binary="taskmgr"), completed=True)
    assert {(each.failed, each.end) for each in counted.commands} == {(False, "unknown")}


def test_tokens_and_costs_of_older_versions_are_read() -> None:
    found = chat(
        "#### Add X  \n\n> Tokens: 1,234 sent, 567 received. Cost: $0.01 request, $0.05 session.  \n"
    )
    assert (found.usage, found.cost_usd) == (Usage(1234, 567), 0.01)


def test_costs_are_summed_and_rounded_tokens_are_estimates() -> None:
    found = parse("aider", (FILES / "agent_programs/aider.md").read_bytes())
    assert found.usage == Usage(4500, 60, estimated=True)
    assert found.cost_usd == pytest.approx(0.0105)
    exact = chat(
        "\n> Tokens: 900 sent, 10 cache write, 400 cache hit, 20 received.\nCost: $0.00 message, $0.00 session.  \n\n#### Hi  \n"
    )
    assert exact.usage == Usage(900, 20, cache_read=400, cache_write=10)
    # It writes 0.00 without a known price.
    assert exact.cost_usd is None


def test_without_a_report_of_tokens_they_are_not_measured() -> None:
    found = chat("\n#### Hi  \n\nHello.\n\n")
    assert (found.usage, found.cost_usd, found.answer) == (None, None, "Hello.")


def test_a_quote_in_an_answer_is_no_note_of_aiders() -> None:
    found = chat(
        f"\n#### Hi  \n\n{QUESTION}y\n> Running ./mt purge\n\n#### A heading\n\nDone.\n\n> Tokens: 1 sent, 2 received.  \n"
    )
    assert ran(found) == []
    assert [event.text for event in found.events if event.role == "user"] == ["Hi"]


def test_what_was_proposed_and_not_asked_about_is_no_call() -> None:
    found = chat("\n#### Hi  \n\n```bash\n./mt list\n```\n\n> Tokens: 1 sent, 2 received.  \n")
    assert (ran(found), find_declined(found)) == ([], [])


@pytest.mark.parametrize("answer", ["n", "s", "d", "skip", "don't"])
def test_a_declined_command_never_ran(answer: str) -> None:
    found = chat(
        f"\n#### Hi  \n\nTry it.\n\n> Tokens: 1 sent, 2 received.  \n> ./mt list  \n{QUESTION}{answer}  \n"
    )
    assert (ran(found), find_declined(found)) == ([], ["./mt list"])


def test_an_answer_that_was_not_understood_is_asked_again() -> None:
    found = chat(
        "\n#### Hi  \n\nTry it.\n\n> Tokens: 1 sent, 2 received.  \n> ./mt list  \n"
        f"> Please answer with one of: yes, no, skip, all, don't  \n{QUESTION}n  \n"
    )
    assert find_declined(found) == ["./mt list"]


def test_a_file_of_several_chats_is_several_sessions_with_lasting_ids() -> None:
    content = (FILES / "sessions/other-agents/aider-two-chats.md").read_bytes()
    first, second = sessions(content)
    assert (first.started, second.started) == ("2026-11-28T10:34:53", "2026-11-28T10:35:15")
    assert first.id != second.id and {first.model, second.model} == {"openai/gpt-4o"}
    assert [len(find_declined(each.transcript)) for each in (first, second)] == [2, 0]
    more = content + b"\n#### Once more.  \n\nDone.\n"
    assert [each.id for each in sessions(more)] == [first.id, second.id]


def test_the_chats_of_one_trial_are_one_transcript() -> None:
    found = parse("aider", (FILES / "sessions/other-agents/aider-two-chats.md").read_bytes())
    assert (found.usage, len(find_declined(found))) == (Usage(3000, 40, estimated=True), 2)
    assert found.cost_usd == pytest.approx(0.007)
