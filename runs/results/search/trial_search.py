"""Write the texts of trials for the search, and search them: commands, outputs, statements and answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, groupby
from typing import Annotated, Any

import msgspec
from django.db import connection
from pydantic import Field

from evalhub.lib.storable_text import make_storable
from evalhub.lib.value import Moment, Value
from evalhub.teams.models import Project
from evaluators.model import Event, Judging, Transcript
from evaluators.redaction import redact_patterns
from runs.db import statements
from runs.models import JudgingRecord, SearchEntry, TranscriptRecord, Trial
from runs.models.trial import TrialState

LONGEST_TEXT = 20_000
"""Characters of each column of an entry."""
LONGEST_LINE = 300
MOST_TEXT_LINES = 200
"""Lines of a transcript without events."""
BATCH = 200
"""Trials indexed in one transaction."""
RUN_FIELDS = ("project_id", "suite_id", "target_id", "guidance_id", "by_id", "model", "tool_version")


def encode_facet(kind: str, value: object) -> str:
    """Return the word for a filter: a key as it is, a text by its hash; letters and digits only."""
    text = str(value)
    key = text if text.isdigit() else hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"x{kind}{key}"


FACETS = {
    "project_id": "p",
    "suite_id": "s",
    "target_id": "t",
    "guidance_id": "g",
    "by_id": "a",
    "model": "m",
    "tool_version": "v",
    "outcome": "o",
}
"""Letters of the filters, by field of the run or trial."""


def facets_of(run_id: int, outcome: str) -> str:
    """Return the facets of a run's trials with an outcome. One query."""
    values = {**statements.run_values(run_id, RUN_FIELDS), "outcome": outcome}
    return " ".join(encode_facet(FACETS[name], value) for name, value in values.items() if value)


def facets_by_outcome(run_id: int, outcomes: Iterable[str]) -> dict[str, str]:
    """Return the facets of a run's trials by outcome. One query."""
    of_run = facets_of(run_id, "")
    return {
        outcome: f"{of_run} {encode_facet(FACETS['outcome'], outcome)}" if outcome else of_run
        for outcome in outcomes
    }


def make_entry(
    trial_id: int,
    facets: str,
    *,
    transcript: Transcript | None,
    judgings: Iterable[Judging],
    answer: str,
    error: str = "",
) -> dict[str, Any]:
    """Return the row of a trial's `SearchEntry`."""
    events = transcript.events if transcript else ()
    outputs = [*map(_output, events), error]
    if transcript and not events:
        outputs += transcript.text.splitlines()[:MOST_TEXT_LINES]
    return {
        "trial": trial_id,
        "facets": facets,
        "commands": _text(map(_command, events)),
        "outputs": _text(outputs),
        "judge": _text(line for judging in judgings for line in _statements(judging)),
        "answer": _text(answer.splitlines()),
    }


def _command(event: Event) -> str:
    if event.type != "tool_call":
        return ""
    if event.command:
        return event.command
    arguments = msgspec.json.encode(event.input).decode() if event.input not in (None, {}) else ""
    return f"{event.name or ''} {arguments}"


def _output(event: Event) -> str:
    """Return the first line that a call printed."""
    if event.type != "tool_result" or event.output is None:
        return ""
    output = event.output if isinstance(event.output, str) else msgspec.json.encode(event.output).decode()
    return next((line for line in output[:LONGEST_TEXT].splitlines() if line.strip()), "")


def _statements(judging: Judging) -> Iterator[str]:
    yield from (judging.reasoning, *judging.negatives, *judging.positives, *judging.reasons.values())


def _text(lines: Iterable[str]) -> str:
    """Return lines as a column's text: each once, cut, without secrets."""
    short = dict.fromkeys(" ".join(line[: 4 * LONGEST_LINE].split())[:LONGEST_LINE] for line in lines)
    text = "\n".join(filter(None, short))[:LONGEST_TEXT]
    return redact_patterns(make_storable(text)) if text else ""


def index_trials(trial_ids: Sequence[int]) -> None:
    """Rewrite the entries of stored trials, from their rows; call it in a transaction."""
    SearchEntry.objects.filter(pk__in=trial_ids).delete()
    trials = list(Trial.objects.filter(pk__in=trial_ids, state=TrialState.FINISHED).defer("scores", "detail"))
    transcripts = {each.pk: each.unpack() for each in TranscriptRecord.objects.filter(pk__in=trial_ids)}
    judgings: dict[int, list[Judging]] = {}
    for judging in JudgingRecord.objects.filter(trial__in=trial_ids):
        judgings.setdefault(judging.trial_id, []).append(
            msgspec.convert(
                {"score": judging.score, "passed": judging.passed, **judging.content}, Judging, strict=False
            )
        )
    facets = {key: facets_of(*key) for key in {(trial.run_id, trial.outcome) for trial in trials}}
    rows = [
        make_entry(
            trial.pk,
            facets[trial.run_id, trial.outcome],
            transcript=transcripts.get(trial.pk),
            judgings=judgings.get(trial.pk, ()),
            answer=trial.answer,
            error=trial.error,
        )
        for trial in trials
    ]
    statements.insert(SearchEntry, rows)


MOST_CANDIDATES = 300
"""The newest matches that are ranked; a word that more trials contain finds the best of these."""
MOST_TERMS = 12
PASSAGE = 160
"""Characters of a passage around its first match."""
COLUMNS = {"commands": 2.0, "judge": 1.5, "outputs": 1.0, "answer": 1.0}
"""What can be searched, with the weight of a match: a command says most about how a tool was used."""
_WEIGHTS = {"commands": "A", "outputs": "B", "judge": "C", "answer": "D"}
"""PostgreSQL's weights, which distinguish the columns of the index."""
_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'(-?)(?:"([^"]*)"?|(\S+))')


@dataclass(frozen=True)
class Term:
    """Words that follow each other."""

    words: tuple[str, ...]
    prefix: bool = False
    """Whether the last word may go on."""

    @property
    def needle(self) -> str:
        """Return what finds it among the words of `Line`, in linear time."""
        words = "".join(f"\x1f{word}\x1f" for word in self.words)
        return words[:-1] if self.prefix else words

    def pattern(self) -> re.Pattern[str]:
        """Return what finds it in a short text, as the index does: any characters but letters and digits between words."""
        end = "" if self.prefix else r"(?![^\W_])"
        return re.compile(r"(?<![^\W_])" + r"[\W_]+".join(map(re.escape, self.words)) + end, re.IGNORECASE)


@dataclass(frozen=True)
class SearchQuery:
    """A typed query: every term must occur, no excluded one may."""

    terms: tuple[Term, ...] = ()
    excluded: tuple[Term, ...] = ()

    @classmethod
    def parse(cls, text: str) -> SearchQuery:
        """Read `deploy "exit code" -timeout sta*`; of an option such as `--env`, the words count."""
        terms: list[Term] = []
        excluded: list[Term] = []
        for minus, phrase, plain in _TERM.findall(text):
            words = tuple(_WORD.findall((phrase or plain).lower()))
            # `--env` is an option, not an excluded word.
            without = bool(minus) and not plain.startswith("-")
            if words:
                (excluded if without else terms).append(Term(words, plain.endswith("*")))
        return cls(tuple(terms[:MOST_TERMS]), tuple(excluded[:MOST_TERMS]))


@dataclass(frozen=True)
class SearchFilters:
    """Where to search; None and empty texts aren't filters."""

    column: str = ""
    suite_id: int | None = None
    target_id: int | None = None
    guidance_id: int | None = None
    by_id: int | None = None
    model: str = ""
    tool_version: str = ""
    outcome: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def facets(self, project: Project) -> list[str]:
        """Return the words of the index that the filters ask for."""
        values = {"project_id": project.pk, **vars(self)}
        return [encode_facet(letter, values[name]) for name, letter in FACETS.items() if values[name]]


@dataclass(frozen=True)
class MatchedPassage:
    """Where a trial matches best: a line of a column, cut around the first match."""

    column: str
    parts: tuple[tuple[str, bool], ...]
    """The text in pieces; True for those that match."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)

    @property
    def marks(self) -> list[tuple[int, int]]:
        """Start and end of each match in the text."""
        ends = list(accumulate(len(text) for text, _ in self.parts))
        return [(end - len(text), end) for (text, found), end in zip(self.parts, ends, strict=True) if found]


@dataclass(frozen=True)
class SearchedLine:
    """One line of a column, and its words in lower case, each between two separators."""

    column: str
    text: str
    words: str


@dataclass(frozen=True)
class FoundTrial(Value):
    """A trial that matches."""

    trial: int
    run: int
    suite: str
    scenario: str
    index: int
    outcome: str
    target: str
    finished: Moment | None
    place: str
    """Where the passage is: commands, outputs, judge or answer."""
    passage: str
    marks: list[tuple[int, int]]
    """Start and end of each match in the passage."""
    score: float
    """Higher is better; comparable within one search only."""
    url: str
    suite_name: Annotated[str, Field(exclude=True)]
    parts: Annotated[tuple[tuple[str, bool], ...], Field(exclude=True)]
    """For pages: the passage in pieces; True for those that match."""


def search_trials(project: Project, query: SearchQuery, filters: SearchFilters) -> list[FoundTrial]:
    """Return the best of the project's newest matching trials, best first, then newest. Two queries."""
    if not query.terms:
        return []
    newest = _newest(query, filters, filters.facets(project))
    rows = SearchEntry.objects.filter(pk__in=newest).values(
        *("pk", *COLUMNS, "trial__run", "trial__scenario__key", "trial__index", "trial__outcome"),
        *(
            "trial__finished",
            "trial__run__suite__name",
            "trial__run__suite__slug",
            "trial__run__target__name",
        ),
    )
    columns = [filters.column] if filters.column else list(COLUMNS)
    hits = [
        _describe_hit(
            row,
            query,
            [
                SearchedLine(column, text, "".join(f"\x1f{word}\x1f" for word in _WORD.findall(text.lower())))
                for column in columns
                for text in row[column].split("\n")
            ],
        )
        for row in rows
    ]
    return sorted(hits, key=lambda trial: (-round(trial.score, 3), -trial.trial))


def _describe_hit(row: Mapping[str, Any], query: SearchQuery, lines: Sequence[SearchedLine]) -> FoundTrial:
    matched = _passage(query, lines)
    return FoundTrial(
        trial=row["pk"],
        run=row["trial__run"],
        suite=row["trial__run__suite__slug"],
        scenario=row["trial__scenario__key"],
        index=row["trial__index"],
        outcome=row["trial__outcome"],
        target=row["trial__run__target__name"],
        finished=row["trial__finished"],
        place=matched.column,
        passage=matched.text,
        marks=matched.marks,
        score=_score(query, lines),
        url=f"/trials/{row['pk']}/",
        suite_name=row["trial__run__suite__name"],
        parts=matched.parts,
    )


def _newest(query: SearchQuery, filters: SearchFilters, facets: Sequence[str]) -> list[int]:
    """Return the newest matching trials. The SQL is written out because the ORM knows no FTS5."""
    matches, text = _MATCHES[connection.vendor](query, filters, facets)
    conditions: list[str] = [matches]
    params: list[Any] = [text]
    for operator, day in ((">=", filters.since), ("<", filters.until)):
        if day:
            conditions.append(f"runs_run.created {operator} %s")
            params.append(connection.ops.adapt_datetimefield_value(day))
    table, key = _TABLES[connection.vendor]
    runs = (
        f" JOIN runs_trial ON runs_trial.id = {key} JOIN runs_run ON runs_run.id = runs_trial.run_id"
        if len(conditions) > 1
        else ""
    )
    sql = (
        f"SELECT {key} FROM {table}{runs} WHERE {' AND '.join(conditions)}"  # noqa: S608 (constants)
        f" ORDER BY {key} DESC LIMIT {MOST_CANDIDATES}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return [key for (key,) in cursor.fetchall()]


def _in_sqlite(query: SearchQuery, filters: SearchFilters, facets: Sequence[str]) -> tuple[str, str]:
    """Return a condition with FTS5's query syntax, and its value."""
    columns = filters.column or " ".join(COLUMNS)
    terms = " AND ".join(map(_fts5_term, query.terms))
    text = f"(facets : ({' AND '.join(facets)})) AND ({{{columns}}} : ({terms}))"
    if query.excluded:
        text = f"({text}) NOT ({{{columns}}} : ({' OR '.join(map(_fts5_term, query.excluded))}))"
    return "runs_search MATCH %s", text


def _fts5_term(term: Term) -> str:
    return f'"{" ".join(term.words)}"' + (" *" if term.prefix else "")


def _in_postgresql(query: SearchQuery, filters: SearchFilters, facets: Sequence[str]) -> tuple[str, str]:
    """Return a condition with PostgreSQL's `tsquery`, and its value."""
    weights = _WEIGHTS[filters.column] if filters.column else "".join(_WEIGHTS.values())
    parts = [*facets, *(_tsquery_term(term, weights) for term in query.terms)]
    parts += [f"!({_tsquery_term(term, weights)})" for term in query.excluded]
    return "runs_searchentry.vector @@ %s::tsquery", " & ".join(parts)


def _tsquery_term(term: Term, weights: str) -> str:
    last = len(term.words) - 1
    words = (
        f"'{word}':{'*' if term.prefix and at == last else ''}{weights}" for at, word in enumerate(term.words)
    )
    return f"({' <-> '.join(words)})"


_MATCHES = {"sqlite": _in_sqlite, "postgresql": _in_postgresql}
_TABLES = {
    "sqlite": ("runs_search", "runs_search.rowid"),
    "postgresql": ("runs_searchentry", "runs_searchentry.trial_id"),
}


def _score(query: SearchQuery, lines: Sequence[SearchedLine]) -> float:
    """Return how well an entry matches: each term by its saturated count in each column, times the column's weight."""
    needles = [term.needle for term in query.terms]
    score = 0.0
    for column, of_column in groupby(lines, key=lambda line: line.column):
        words = "".join(line.words for line in of_column)
        for needle in needles:
            count = words.count(needle)
            score += COLUMNS[column] * count / (1 + count)
    return score


def _passage(query: SearchQuery, lines: Sequence[SearchedLine]) -> MatchedPassage:
    """Return the line with the most terms, those of weightier columns first."""
    needles = [term.needle for term in query.terms]
    best = max(lines, key=lambda line: sum(needle in line.words for needle in needles))
    patterns = [term.pattern() for term in query.terms]
    return MatchedPassage(best.column, tuple(_mark_matches(_around(best.text, patterns), patterns)))


def _around(line: str, patterns: Sequence[re.Pattern[str]]) -> str:
    """Return a line cut around its first match."""
    first = min((match.start() for each in patterns if (match := each.search(line))), default=0)
    start = max(0, first - PASSAGE // 4)
    text = line[start : start + PASSAGE]
    return ("…" if start else "") + text + ("…" if start + PASSAGE < len(line) else "")


def _mark_matches(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, bool]]:
    spans = sorted(match.span() for pattern in patterns for match in pattern.finditer(text))
    at = 0
    for start, end in spans:
        if start >= at:
            yield text[at:start], False
            yield text[start:end], True
            at = end
    yield text[at:], False
