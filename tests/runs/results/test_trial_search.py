"""The texts of trials are indexed and found, on each database alike."""

from __future__ import annotations

from datetime import UTC, datetime
from time import process_time
from typing import Any

import pytest

from evaluators.model import Event, Judging, Transcript
from runs.db import statements
from runs.models import Run, SearchEntry, Trial
from runs.results.search.trial_search import (
    MOST_CANDIDATES,
    SearchQuery,
    Term,
    facets_of,
    index_trials,
    make_entry,
)
from runs.results.search.views import TrialSearch, find_trials
from tests.builders import make_member, make_project, make_run, make_suite, make_trial
from tests.runs.carried import one, shell_project


@pytest.fixture
def run(db: None) -> Run:
    version = make_suite(make_project(), ("create", "export"), name="Basics")
    return make_run(version, tool_version="taskmgr 2.4.0", model="small-1")


def store(run: Run, *, outcome: str = "pass", **texts: Any) -> Trial:
    """Store a trial with its entry: commands and outputs as calls, the judge's reasoning, the answer."""
    trial = make_trial(run, "create", outcome=outcome)
    events = [Event("tool_call", command=line) for line in texts.get("commands", ())]
    events += [Event("tool_result", output=text) for text in texts.get("outputs", ())]
    judgings = [Judging(score=1.0, passed=True, reasoning=texts["judge"])] if "judge" in texts else []
    row = make_entry(
        trial.pk,
        facets_of(run.pk, outcome),
        transcript=Transcript(events=tuple(events)),
        judgings=judgings,
        answer=texts.get("answer", ""),
    )
    statements.insert(SearchEntry, [row])
    return trial


def found(run: Run, q: str, **filters: str) -> list[int]:
    return [hit.trial for hit in find_trials(run.project, TrialSearch(q=q, **filters))]


@pytest.mark.parametrize(
    ("text", "terms", "excluded"),
    [
        ("deploy env", [Term(("deploy",)), Term(("env",))], []),
        ('"exit code 2" STAGE*', [Term(("exit", "code", "2")), Term(("stage",), prefix=True)], []),
        ("deploy -timeout", [Term(("deploy",))], [Term(("timeout",))]),
        ("--env=prod", [Term(("env", "prod"))], []),
        ("src/deploy.py", [Term(("src", "deploy", "py"))], []),
        ('"open quote', [Term(("open", "quote"))], []),
        ("größe", [Term(("größe",))], []),
        ("'; DROP TABLE -- \" *", [Term(("drop",)), Term(("table",))], []),
        ('-- * "" ()', [], []),
    ],
)
def test_a_query_is_words_phrases_beginnings_and_exclusions(text, terms, excluded):
    assert SearchQuery.parse(text) == SearchQuery(tuple(terms), tuple(excluded))


@pytest.mark.parametrize(
    ("q", "matches"),
    [
        ("deploy", True),
        ("DEPLOY", True),
        ("deplo", False),
        ("deplo*", True),
        ('"deploy --env"', True),
        ('"env deploy"', False),
        ("--env", True),
        ("env denied", True),
        ("deploy absent", False),
        ("deploy -denied", False),
        ("deploy -absent", True),
        ("careless", True),
        ("größe", True),
        ("second", False),
        ("xp1", False),
    ],
)
def test_every_word_must_occur_and_no_excluded_one(run, q, matches):
    trial = store(
        run,
        commands=["taskmgr deploy --env prod"],
        outputs=["error: permission denied\nsecond line"],
        judge="The agent was careless.",
        answer="Die Größe stimmt.",
    )
    assert found(run, q) == ([trial.pk] if matches else [])


@pytest.mark.parametrize(
    ("place", "matches"),
    [("", True), ("commands", True), ("outputs", False), ("judge", False), ("answer", False)],
)
def test_a_search_is_limited_to_a_place(run, place, matches):
    store(run, commands=["taskmgr deploy"], answer="Done.")
    assert bool(found(run, "deploy", place=place)) is matches


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"suite": "basics"}, True),
        ({"suite": "absent"}, False),
        ({"target": "local"}, True),
        ({"target": "other"}, False),
        ({"outcome": "pass"}, True),
        ({"outcome": "fail"}, False),
        ({"tool_version": "taskmgr 2.4.0"}, True),
        ({"tool_version": "taskmgr 2.4"}, False),
        ({"guidance": "99"}, False),
        ({"by": "nobody"}, False),
        ({"since": "2026-11-09"}, True),
        ({"since": "2026-11-10"}, False),
        ({"until": "2026-11-09"}, True),
        ({"until": "2026-11-08"}, False),
        ({"since": "someday"}, True),
        ({"suite": "basics", "outcome": "pass", "since": "2026-11-01"}, True),
    ],
)
def test_filters_narrow_it(run, filters, matches):
    store(run, commands=["taskmgr deploy"])
    Run.objects.filter(pk=run.pk).update(created=datetime(2026, 11, 9, 12, tzinfo=UTC))
    assert bool(found(run, "deploy", **filters)) is matches


def test_it_finds_the_runs_of_a_person(run):
    grace = make_member(run.project, "runner", "grace")
    run.by = grace
    trial = store(run, commands=["taskmgr deploy"])
    assert found(run, "deploy", by=grace.username) == [trial.pk]


def test_another_projects_trials_are_never_found(run):
    other = make_run(make_suite(make_project("secret"), ("create",)))
    store(other, commands=["taskmgr deploy"])
    assert found(run, "deploy") == []


def test_better_matches_come_first_then_newer_ones(run):
    answer = store(run, answer="I will deploy.")
    often = store(run, commands=["taskmgr deploy", "taskmgr deploy --force"])
    once = store(run, commands=["taskmgr deploy"])
    newer = store(run, commands=["taskmgr deploy"])
    assert found(run, "deploy") == [often.pk, newer.pk, once.pk, answer.pk]


def test_a_passage_shows_the_line_with_most_words(run):
    store(run, commands=["taskmgr list", "taskmgr deploy --env prod"], outputs=["deploy failed"])
    (shown,) = find_trials(run.project, TrialSearch(q="prod deploy"))
    assert (shown.place, shown.passage) == ("commands", "taskmgr deploy --env prod")
    assert [shown.passage[start:end] for start, end in shown.marks] == ["deploy", "prod"]
    assert (shown.suite_name, shown.scenario, shown.target) == ("Basics", "create", "local")


def test_a_long_line_is_cut_around_its_first_match(run):
    store(run, commands=[f"taskmgr {'a ' * 60}deploy {'b ' * 60}"])
    (hit,) = find_trials(run.project, TrialSearch(q="deploy"))
    assert hit.passage.startswith("…")
    assert hit.passage.endswith("…")
    assert "deploy" in hit.passage


def test_secrets_are_not_indexed(run):
    store(run, commands=["export KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD"])
    assert "abcdefghijklmnop" not in SearchEntry.objects.get().commands
    assert found(run, "abcdefghijklmnopqrstuvwxyz0123456789ABCD") == []


def test_of_a_common_word_the_newest_are_ranked(run):
    first = store(run, commands=["taskmgr deploy deploy deploy"])
    facets = facets_of(run.pk, "pass")
    trials = [make_trial(run, "export") for _ in range(MOST_CANDIDATES)]
    rows = [make_entry(each.pk, facets, transcript=None, judgings=[], answer="deploy") for each in trials]
    statements.insert(SearchEntry, rows)
    assert len(found(run, "deploy")) == MOST_CANDIDATES
    assert first.pk not in found(run, "deploy")


def test_stored_trials_are_indexed_once_and_again(run):
    trial = make_trial(run, "create", answer="All deployed.")
    assert found(run, "deployed") == []
    index_trials([trial.pk])
    assert found(run, "deployed") == [trial.pk]
    Trial.objects.filter(pk=trial.pk).update(answer="All removed.")
    index_trials([trial.pk])
    assert (found(run, "deployed"), found(run, "removed")) == ([], [trial.pk])


def test_a_deleted_trial_is_not_found(run):
    trial = store(run, commands=["taskmgr deploy"])
    Trial.objects.filter(pk=trial.pk).delete()
    assert found(run, "deploy") == []


@pytest.mark.django_db(transaction=True)
def test_a_recorded_trial_is_found_by_its_answer():
    trial = one(shell_project(), prompt="echo zebra crossing")
    assert found(trial.run, '"zebra crossing"', outcome="pass") == [trial.pk]


def test_phrases_of_repeated_words_are_ranked_in_linear_time(run):
    """Each word of such a text begins a phrase that almost matches."""
    text = [f"{'a ' * 140}{number}" for number in range(67)]
    trial = store(run, commands=["a b", *text], outputs=text, judge="\n".join(text))
    for _ in range(20):
        store(run, commands=["a a a a a a a b", *text], outputs=text, judge="\n".join(text))
    began = process_time()
    hits = found(run, " ".join([f'"{"a " * 7}b"'] * 11))
    spent = process_time() - began
    assert len(hits) == 20
    assert trial.pk not in hits
    assert spent < 5


@pytest.mark.parametrize("q", ["sta*", '"stage file"', "stage", "größe"])
def test_each_match_of_a_term_counts(run, q):
    once = store(run, commands=["stage file größe one"])
    twice = store(run, commands=["stage file größe two", "STAGE-file: Größe"])
    assert found(run, q) == [twice.pk, once.pk]
    (_, line) = find_trials(run.project, TrialSearch(q=q))
    assert line.marks
