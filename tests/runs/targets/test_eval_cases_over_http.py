"""Eval cases on an agent of ours behind HTTP, from the file to the suite result (tool-forge eval runner)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runs.models import Change, Run
from tests.commands.calling import call
from tests.runs.servers import Reply, Request, serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.one_database]

GOOD = {"name": "look", "params": {"at": "sky"}, "success": True}
BAD = {"name": "look", "params": {}, "success": False}
SILENT = {"name": "look", "params": {}}
ENOUGH = {"outputTokens": 3}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Return a function that runs one case on an answer and returns what the suite result says."""

    def go(
        answer: Any, expect: dict[str, Any], *, options: tuple[str, ...] = (), **case: Any
    ) -> dict[str, Any]:
        written = {"id": "one", "input": {"message": "Go."}, "expect": expect, **case}
        (tmp_path / "look.labeled.json").write_text(json.dumps([written]))
        with serving(answer) as server:
            target = {"name": "agent", "provider": "http", "url": server.url, "stubs_field": "given.stubs"}
            (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [target]}))
            call(
                "run_scenarios", str(tmp_path / "look.labeled.json"), "--targets", str(tmp_path / "targets.yaml"),
                "--now", "--output-dir", str(tmp_path / "results"), *options,
            )  # fmt: skip
        stored = Run.objects.latest("pk")
        found: dict[str, Any] = json.loads(
            (tmp_path / "results" / f"look.labeled.run-{stored.pk}.json").read_text()
        )
        return found

    return go


def reply(text: str = "Blue.", calls: tuple[dict[str, Any], ...] = (), **more: Any) -> Reply:
    return Reply({"response": text, "toolCalls": list(calls), **more})


@pytest.mark.parametrize(
    ("calls", "stubs", "passed", "error"),
    [
        ((GOOD, BAD), None, False, "noToolErrors: look failed"),
        ((SILENT,), None, True, None),
        ((GOOD,), {"listen": {}}, False, "noToolErrors: no stub for look"),
    ],
    ids=["a call failed", "nobody says", "it has no stub"],
)
def test_no_tool_errors_means(
    run: Any, calls: tuple[dict[str, Any], ...], stubs: Any, passed: bool, error: str | None
) -> None:
    case = {} if stubs is None else {"stubs": stubs}
    (entry,) = run(reply(calls=calls), {"noToolErrors": True}, **case)["cases"]
    assert (entry["passed"], entry.get("error")) == (passed, error)
    assert entry["assertionsSkipped"] == (1 if calls == (SILENT,) else 0)


def test_stubs_go_to_the_endpoint_that_takes_them(run: Any) -> None:
    bodies: list[Any] = []

    def answer(request: Request) -> Reply:
        bodies.append(request.json)
        return reply()

    run(answer, {"responseNonEmpty": True}, stubs={"look": {"colour": "blue"}})
    assert bodies == [{"message": "Go.", "given": {"stubs": {"look": {"colour": "blue"}}}}]


@pytest.mark.parametrize(
    ("expect", "usage", "passed"),
    [
        ({"maxTokens": 3, "maxLatencyMs": 20_000}, ENOUGH, True),
        ({"maxTokens": 2}, ENOUGH, False),
        ({"maxTokens": 2}, None, True),
        ({"maxLatencyMs": 100}, None, False),
    ],
    ids=["within both", "too many tokens", "estimated", "too slow"],
)
def test_tokens_and_latency_are_bounds(
    run: Any, expect: dict[str, Any], usage: dict[str, int] | None, passed: bool
) -> None:
    given = reply("Blue.", **({"usage": usage} if usage else {}))
    given.delay = 0.06  # before the answer and after its only piece
    (entry,) = run(given, expect)["cases"]
    assert entry["passed"] is passed
    assert entry["durationMs"] >= 100 or "maxTokens" in expect
    if not passed:
        assert entry["error"].startswith(f"{next(iter(expect))}: ")


@pytest.mark.spec("tool-forge", "A case that takes too long fails with timeout")
def test_a_case_that_takes_too_long_fails_with_the_contracts_word(run: Any) -> None:
    found = run(
        Reply({"response": "late"}, delay=5), {"responseNonEmpty": True}, options=("--timeout-seconds", "0.3")
    )
    (entry,) = found["cases"]
    assert (entry["passed"], entry["error"], entry["durationMs"], entry["assertionsRun"]) == (
        False,
        "timeout",
        300,
        0,
    )


def test_a_broken_endpoint_regresses_the_result_not_the_verdict(run: Any) -> None:
    first = run(reply(), {"responseNonEmpty": True})
    found = run(Reply({}, status=500), {"responseNonEmpty": True}, options=("--baseline", first["runId"]))
    (entry,) = found["cases"]
    assert entry["error"].startswith("agent error: ")
    assert entry["details"]["infrastructure"] is True
    assert (found["baselineRunId"], found["regressions"]) == (first["runId"], ["one"])
    assert Run.objects.latest("pk").errors == 1
    assert not Change.objects.exists()


def test_without_a_choice_the_newest_run_is_the_baseline(run: Any) -> None:
    first = run(reply(), {"responseNonEmpty": True})
    second = run(reply(""), {"responseNonEmpty": True})
    third = run(reply(), {"responseNonEmpty": True})
    fourth = run(reply(""), {"responseNonEmpty": True})
    assert [each["baselineRunId"] for each in (first, second, third)] == [
        None,
        first["runId"],
        second["runId"],
    ]
    assert (fourth["baselineRunId"], fourth["regressions"]) == (third["runId"], ["one"])


@pytest.fixture
def tokenizers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with tokenizers of its own, as it would be installed."""
    (tmp_path / "site/own-1.0.dist-info").mkdir(parents=True)
    (tmp_path / "site/own_tokenizer.py").write_text("def words(text):\n    return len(text.split())\n")
    entries = "[evalhub.tokenizers]\nwords = own_tokenizer:words\nbroken = own_tokenizer:none\nfails = builtins:exec\n"
    (tmp_path / "site/own-1.0.dist-info/entry_points.txt").write_text(entries)
    (tmp_path / "site/own-1.0.dist-info/METADATA").write_text("Name: own\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.parametrize(
    ("chosen", "error"),
    [
        ("words", "maxTokens: 4 tokens (by tokenizer), more than 3"),
        ("broken", "agent error: The tokenizer 'broken' of EVALHUB_TOKENIZER can't be loaded"),
        ("fails", "agent error: The tokenizer 'fails' failed"),
        ("missing", "agent error: The tokenizer 'missing' of EVALHUB_TOKENIZER can't be loaded"),
        ("", "maxTokens: 5 tokens (by characters), more than 3"),
    ],
)
@pytest.mark.spec("tool-forge", "maxTokens, with a tokenizer of one's own")
def test_a_tokenizer_of_ones_own_counts_tokens(
    run: Any, tokenizers: None, settings: Any, chosen: str, error: str
) -> None:
    settings.TOKENIZER = chosen
    (entry,) = run(reply("one two three four"), {"maxTokens": 3})["cases"]
    assert entry["error"].startswith(error)
