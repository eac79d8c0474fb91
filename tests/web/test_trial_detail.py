"""One trial: passed, failed, an error, waiting, hostile, very long."""

from __future__ import annotations

import html
import re

import pytest

from evaluators.model import Event
from runs.artifacts import keep
from runs.models import Artifact
from tests.builders import (
    make_command,
    make_judging,
    make_project,
    make_run,
    make_suite,
    make_target,
    make_transcript,
    make_trial,
    shell,
)

HOSTILE = "</pre><script>alert(1)</script>\u202eexe\x1b[31m"
SHOWN = "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;⟨U+202E⟩exe␛[31m"


@pytest.fixture
def run(project):
    return make_run(make_suite(project, ("export",), name="Basics"))


def address(trial, part=""):
    return f"/p/tools/trials/{trial.pk}/{part}"


def page(client, trial, query=""):
    return client.get(address(trial) + query).content.decode()


def test_a_judge_that_is_missing_is_told_once_beside_the_gates(signed_in, run):
    missing = "No judge is chosen."
    judge = {
        "layer": "judge",
        "name": "judge",
        "value": None,
        "passed": None,
        "message": missing,
        "error": True,
    }
    trial = make_trial(run, outcome="fail", error=missing, scores=[judge])
    make_judging(trial, content={"error": missing})
    text = page(signed_in(), trial)
    assert text.partition('aria-labelledby="judge"')[2].count(missing) == 1
    assert "No command was seen." in text


def test_it_works(signed_in, run):
    trial = make_trial(run, outcome="fail", answer="I exported 14 tasks.")
    make_judging(trial)
    text = page(signed_in(), trial)
    for expected in (
        "Do export.",
        "I exported 14 tasks.",
        "out.txt does not exist.",
        "<dt>Expected</dt><dd>a file</dd>",
        "It guessed, then read.",
        "Guessed a flag.",
        "confidence 0.80",
        "First-try success",
    ):
        assert expected in text


def test_what_is_not_known_has_no_line(signed_in, run):
    text = page(signed_in(), make_trial(run, outcome="fail"))
    assert "<dt>Expected</dt>" in text
    assert "<dt>Exit code</dt>" not in text
    assert "recomputed" not in text


def test_it_tells_attempts_from_first_tries_and_help(signed_in, run):
    trial = make_trial(run)
    lines = [("tool export --bad", 2), ("tool export --help", 0), ("tool export --good", 0), ("ls", 0)]
    make_transcript(
        trial, [event for n, (line, code) in enumerate(lines) for event in shell(line, "out", code, n)]
    )
    make_command(trial, 1, lines[0][0], subcommand="export", exit_code=2, failed=True, event=0)
    make_command(trial, 2, lines[1][0], subcommand="export", exit_code=0, help=True, event=2)
    make_command(trial, 3, lines[2][0], subcommand="export", exit_code=0, retry_of=1, event=4)
    text = page(signed_in(), trial)
    assert "2 attempts, succeeded at attempt 2, help was opened" in text
    for mark in ("first try", "? help", "↻ retry 1", "not the tool", "exit 2"):
        assert mark in text


def test_it_shows_commands_that_only_the_text_tells(signed_in, run):
    trial = make_trial(run)
    make_command(trial, 1, "tool list", exit_code=None)
    text = page(signed_in(), trial)
    assert "tool list" in text
    assert "exit ?" in text


def test_it_says_that_an_error_is_no_failure(signed_in, run):
    trial = make_trial(
        run, outcome="error", error="The provider answered 529.", error_kind="provider", starts=3
    )
    text = page(signed_in(), trial)
    assert "This trial is an error, not a failure" in text
    assert "</span> The provider answered 529.</span></h2>" in text
    assert text.count("The provider answered 529.") == 1
    assert "<dt>Begun</dt><dd>3 times</dd>" in text
    assert "Nothing to judge." in text


def test_a_long_error_is_told_in_a_line_and_whole(signed_in, run):
    detail = {"traceback": f"Traceback: {HOSTILE}", "notes": ["Tried twice."]}
    trial = make_trial(run, outcome="error", error=f"{HOSTILE} broke.\n" + "x" * 1000, detail=detail)
    text = page(signed_in(), trial)
    heading = text.partition('<h2 id="what">')[2].partition("</h2>")[0]
    assert SHOWN in heading
    assert len(heading) < 300
    assert "x" * 1000 in text
    assert f"Traceback: {SHOWN}" in text
    assert "Tried twice." in text
    assert "<script>alert" not in text


def test_a_trial_that_failed_although_a_layer_broke_counts(signed_in, run):
    text = page(signed_in(), make_trial(run, outcome="fail", error="The judge did not answer."))
    assert "A layer broke, and the trial failed anyway" in text
    assert "Start this scenario again" not in text


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("runner", True)])
def test_the_scenario_of_an_error_can_be_started_again(signed_in, project, role, may):
    run = make_run(make_suite(project, ("export & more",), name="Basics"), model="m-1")
    client = signed_in(role)
    text = page(client, make_trial(run, outcome="error", error="No answer."))
    found = re.search(r'href="([^"]+)">Start this scenario again…', text)
    assert bool(found) is may
    if found:
        form = client.get(html.unescape(found[1])).context["form"]
        asked = {name: form[name].value() for name in ("suite", "targets", "models", "only")}
        assert asked == {"suite": "basics", "targets": ["local"], "models": "m-1", "only": "export & more"}


def test_what_cannot_be_asked_for_again_is_not_offered(signed_in, project):
    foreign = make_target(project, "theirs")
    foreign.provider = "imported"
    foreign.save()
    version, odd = make_suite(project), make_suite(project, ("a,b",))
    client = signed_in()
    for run in (make_run(version, target=foreign), make_run(odd)):
        text = page(client, make_trial(run, outcome="error", error="No answer."))
        assert "Start this scenario again" not in text


def test_it_says_that_a_trial_waits(signed_in, run):
    assert "Waiting for a worker." in page(signed_in(), make_trial(run, outcome=""))


@pytest.mark.parametrize("part", ["commands", "messages", "raw"])
def test_hostile_text_stays_text(signed_in, run, part):
    trial = make_trial(run, answer=HOSTILE)
    events = [Event("message", role="assistant", text=HOSTILE), *shell(f"echo {HOSTILE}", HOSTILE)]
    make_transcript(trial, events, text=HOSTILE)
    make_judging(trial, content={"negatives": [HOSTILE], "reasoning": HOSTILE, "raw_answer": HOSTILE})
    text = page(signed_in(), trial, f"?part={part}")
    assert SHOWN in text
    assert "<script>alert" not in text
    assert "\u202e" not in text


def test_a_line_of_a_megabyte_is_cut_and_can_be_downloaded(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, shell("cat big", "x" * 1_000_000), text="y" * 1_000_000)
    client = signed_in()
    text = page(client, trial)
    assert len(text) < 60_000
    assert "Download all 1,000,000 characters" in text
    assert len(client.get(address(trial, "transcript/")).content) == 1_000_000


def test_steps_past_two_hundred_come_on_demand(signed_in, run):
    trial = make_trial(run)
    make_transcript(trial, [event for n in range(450) for event in shell(f"run {n}", number=n)])
    client = signed_in()
    assert page(client, trial).count('class="event') == 200
    headers = {"HX-Request": "true", "HX-Target": "more-steps"}
    rest = client.get(address(trial) + "?from=400", headers=headers).content.decode()
    assert rest.count('class="event') == 50
    assert "<html" not in rest


def test_neighbours_are_linked(signed_in, run):
    first, second = make_trial(run), make_trial(run)
    client = signed_in()
    assert f'rel="next" href="{address(second)}"' in page(client, first)
    assert f'rel="prev" href="{address(first)}"' in page(client, second)


def test_the_strip_rings_this_trial(signed_in, run):
    trials = [make_trial(run) for _ in range(3)]
    assert '<i class=""></i><i class="here"></i><i class=""></i>' in page(signed_in(), trials[1])


def test_an_artifact_is_a_download_whatever_is_in_it(signed_in, run, settings, tmp_path):
    settings.ARTIFACTS_DIR = tmp_path
    trial = make_trial(run)
    kept = keep("page.html", b"<script>alert(1)</script>", "text/html")
    Artifact.objects.create(
        trial=trial, name=kept.name, sha256=kept.sha256, size=kept.size, media_type=kept.media_type
    )
    response = signed_in().get(address(trial, "artifacts/page.html/"))
    assert b"".join(response.streaming_content) == b"<script>alert(1)</script>"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize("part", ["transcript/", "artifacts/transcript/"])
def test_files_of_another_project_are_not_found(signed_in, run, part):
    trial = make_trial(run)
    other = signed_in(of=make_project("other"))
    assert other.get(f"/p/other/trials/{trial.pk}/{part}").status_code == 404
    assert other.get(address(trial, part)).status_code == 404


@pytest.mark.parametrize("part", ["commands", "messages", "raw"])
def test_what_looks_like_a_key_is_redacted(signed_in, run, part):
    key = "sk-ant-api03-" + "a" * 40
    trial = make_trial(run, answer=key)
    make_transcript(trial, [Event("message", role="user", text=key), *shell(f"use {key}", key)], text=key)
    assert key not in page(signed_in(), trial, f"?part={part}")


@pytest.mark.parametrize(("role", "is_whole"), [("viewer", False), ("runner", False), ("author", True)])
def test_only_authors_download_what_is_not_redacted(signed_in, run, role, is_whole):
    key = "sk-ant-api03-" + "a" * 40
    trial = make_trial(run)
    make_transcript(trial, [], text=key)
    client = signed_in(role)
    assert (key in client.get(address(trial, "transcript/")).content.decode()) is is_whole
    assert client.get(address(trial, "artifacts/any/")).status_code == (404 if is_whole else 403)


def test_it_says_when_an_artifact_is_gone(signed_in, run):
    assert signed_in().get(address(make_trial(run), "artifacts/gone/")).status_code == 404


def test_it_shows_notes_of_scripts(signed_in, run):
    trial = make_trial(run, detail={"scripts": [{"command": "sh after.sh", "message": "Exit code 3"}]})
    assert "Exit code 3" in page(signed_in(), trial)


def interaction(value):
    """Return what a trial keeps of layer 1 with this error rate; None is a trial without commands."""
    told = {"available": value is not None, "source": "events", "error_rate": value or 0.0}
    score = {"layer": "interaction", "name": "error_rate", "value": value, "passed": None}
    return {"scores": [score], "detail": {"interaction": told}}


def usual(client, trial):
    page = client.get(address(trial)).context["page"]
    return {each.label: tuple(each.usual) for each in page.metrics}["Error rate"]


def test_a_measure_stands_beside_the_median_of_its_scenario_before(signed_in, project):
    version = make_suite(project, ("create", "export"))
    for value in (0.0, 0.25, 0.75):
        make_trial(make_run(version), "export", **interaction(value))
    trial = make_trial(make_run(version), "export", **interaction(1.0))
    make_trial(make_run(version), "export", **interaction(0.5))
    client = signed_in()
    assert usual(client, trial) == (0.25, 3)
    row = '<td class="num">1.00</td><td class="num muted">0.25<span class="of">3 trials</span></td>'
    assert row in page(client, trial)


def test_the_median_is_of_the_last_twenty_and_of_what_was_measured(signed_in, run):
    for value in [9.0] * 5 + [1.0] * 11 + [None] * 5 + [3.0] * 4:
        make_trial(run, **interaction(value))
    assert usual(signed_in(), make_trial(run, **interaction(2.0))) == (1.0, 15)


def test_errors_branches_targets_and_other_scenarios_are_not_usual(signed_in, project):
    version = make_suite(project, ("create", "export"))
    mine = make_run(version, branch="main")
    make_trial(mine, "create", **interaction(0.5))
    make_trial(mine, "create", outcome="error", **interaction(1.0))
    make_trial(mine, "create", outcome="", **interaction(1.0))
    make_trial(mine, "export", **interaction(1.0))
    for changes in ({"branch": "feature/x"}, {"target": make_target(project, "another")}):
        make_trial(make_run(version, **changes), "create", **interaction(1.0))
    trial = make_trial(make_run(version, target=mine.target), "create", **interaction(0.0))
    assert usual(signed_in(), trial) == (0.5, 1)


def test_a_scenarios_first_trial_has_no_median(signed_in, run):
    trial = make_trial(run, **interaction(0.5))
    assert usual(signed_in(), trial) == (None, 0)
    assert '<td class="num muted">·<span class="of">0 trials</span></td>' in page(signed_in(), trial)


def test_the_page_takes_at_most_twelve_queries(signed_in, run, django_assert_max_num_queries):
    trial = make_trial(run)
    make_transcript(trial, shell("ls"))
    make_judging(trial)
    client = signed_in()
    with django_assert_max_num_queries(12):
        page(client, trial)


def gate(name, **changes):
    return {"layer": "gates", "name": name, "value": 0.0, "passed": False, "message": "No.", **changes}


def with_commands(run, **changes):
    """Return a trial with four commands, of which the second and the third failed."""
    trial = make_trial(run, outcome="fail", **changes)
    lines = [
        ("cat AGENTS.md", "Use --format.", 0),
        ("tool list --output-format json", "error: unexpected argument '--output-format' found", 2),
        ("tool export --file infra.json", "no such project", 1),
        ("jq length infra.json", "14", 0),
    ]
    make_transcript(
        trial, [event for n, (line, out, code) in enumerate(lines) for event in shell(line, out, code, n)]
    )
    for n, (line, _, code) in enumerate(lines[1:3]):
        make_command(trial, n, line, exit_code=code, failed=True, event=2 * n + 2)
    return trial


def cited(text, words):
    """Return the addresses of the commands that are linked behind these words."""
    part = text.partition(words)[2].partition("</p>")[0].partition("</div>")[0]
    return re.findall(r'class="cite" href="([^"]+)"', part)


@pytest.mark.parametrize(
    ("score", "words", "addresses"),
    [
        (gate("no_transcript_errors", detail={"expected": 0, "actual": 2}), "failed", ["#c2", "#c3"]),
        (gate("file_exists", detail={"path": "out/infra.json"}), "named infra.json in", ["#c3", "#c4"]),
        (
            gate("command_json_path", detail={"command": "cat infra.json"}),
            "named infra.json in",
            ["#c3", "#c4"],
        ),
        (gate("file_exists", detail={"path": "fra.json"}), "no command named fra.json", []),
    ],
    ids=["failed commands", "a file", "a file of a command", "a file that nobody names"],
)
def test_a_failed_gate_leads_to_the_commands_it_is_about(signed_in, run, score, words, addresses):
    text = page(signed_in(), with_commands(run, scores=[score]))
    gates = text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]
    before = "<span>" if addresses else '<span class="muted">'
    assert before + words in gates
    assert cited(gates, before + words) == addresses


def test_a_gate_that_passed_or_looks_at_no_command_leads_nowhere(signed_in, run):
    scores = [gate("file_exists", passed=True, detail={"path": "infra.json"}), gate("script", detail={})]
    text = page(signed_in(), with_commands(run, scores=scores))
    assert 'class="cite"' not in text.partition('aria-labelledby="gates"')[2].partition("</section>")[0]


def test_an_assertion_leads_to_the_calls_it_names(signed_in, run):
    def assertion(name, failure):
        return {"layer": "assertions", "name": name, "passed": False, "detail": {"failures": [failure]}}

    names = ("find", "delete", "delete")
    trial = make_trial(
        run,
        outcome="fail",
        scores=[assertion("toolsNotCalled", "delete was called"), assertion("noToolErrors", "delete failed")],
    )
    events = [Event("tool_call", id=str(n), name=name, input={}) for n, name in enumerate(names)]
    make_transcript(trial, [*events, Event("tool_result", id="2", success=False)])
    for n, name in enumerate(names):
        make_command(trial, n, f"{name} {{}}", subcommand=name, failed=n == 2, event=n)
    told = page(signed_in(), trial).partition('aria-labelledby="gates"')[2].split("<li ")
    assert [cited(each, "<span>calls") for each in told[1:]] == [["#c2", "#c3"], ["#c3"]]


@pytest.mark.parametrize(
    ("statement", "told", "addresses"),
    [
        ("Used the flag `--output-format`.", "in", ["#c2"]),
        ("Used --output-format, which does not exist.", "in", ["#c2"]),
        ("It saw 'no such project' and went on.", "in", ["#c3"]),
        ("Ran “jq length” on infra.json.", "in", ["#c4"]),
        ("Ran `tool frobnicate`.", "! no line found", []),
        ("Did not read the documentation.", "quotes no command", []),
    ],
)
def test_a_statement_of_the_judge_leads_to_the_commands_it_quotes(signed_in, run, statement, told, addresses):
    trial = with_commands(run)
    make_judging(trial, content={"negatives": [statement], "positives": []})
    text = page(signed_in(), trial).partition("<h3>Issues</h3>")[2].partition("</ul>")[0]
    assert told in text
    assert cited(text, "<div") == addresses


def test_nothing_is_cited_where_no_command_is_known(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    make_judging(trial, content={"negatives": ["Ran `tool frobnicate`."]})
    text = page(signed_in(), trial)
    assert "no line found" not in text
    assert "no command named" not in text


def test_a_citation_opens_the_part_that_its_command_is_in(signed_in, run):
    trial = make_trial(run, outcome="fail", scores=[gate("file_exists", detail={"path": "infra.json"})])
    events = [event for n in range(250) for event in shell(f"run {n}", number=n)]
    make_transcript(trial, [*events, *shell("cat infra.json", number=250)])
    client = signed_in()
    assert 'href="?part=commands&amp;from=200#c251"' in page(client, trial)
    assert 'href="#c251"' in page(client, trial, "?from=200")
    assert 'href="?part=commands&amp;from=200#c251"' in page(client, trial, "?part=messages")


def test_hostile_statements_and_names_are_cited_as_text(signed_in, run):
    path = f"{HOSTILE}.(*+json"
    trial = with_commands(run, scores=[gate("file_exists", detail={"path": path})])
    make_judging(trial, content={"negatives": [f"Ran `{HOSTILE}`."]})
    text = page(signed_in(), trial)
    assert "<script>alert" not in text
    assert "no line found" in text
