"""Group judges' statements over runs by similar wording, for the queue of reviews."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import msgspec
from django.db.models import TextField
from django.db.models.functions import Cast
from msgspec import Struct

from evalhub.teams.models import Project
from runs.models import JudgingRecord, Review, Run
from runs.results.address_filters import AddressFilters
from runs.review.calibrations import JudgeVersion


def names(text: str, criterion: str) -> bool:
    """Return whether a statement names a criterion by its id.

    `[id]` and `id:` at the beginning always do. Elsewhere the id counts if it has several words, because one such as
    `task` is an everyday word.
    """
    words = re.split(r"[\W_]+", criterion.casefold())
    written = r"[\W_]+".join(map(re.escape, filter(None, words)))
    if not written:
        return False
    start = rf"\s*(\[\s*{written}\s*\]|[`*\"']*{written}[`*\"']*\s*:)"
    shown = text.casefold()
    if re.match(start, shown):
        return True
    return len(list(filter(None, words))) > 1 and re.search(rf"(?<!\w){written}(?!\w)", shown) is not None


def statements_about(criterion: str, reason: str, statements: Sequence[str]) -> list[int]:
    """Return the positions of statements that name a criterion and don't repeat its reason."""
    return [
        position
        for position, text in enumerate(statements)
        if names(text, criterion) and not (reason and reason in text)
    ]


SIMILAR = 85.0
"""Least similarity of a group's texts, 0 to 100: normalized indel similarity of their sorted words."""
MOST_RUNS = 20
MOST_JUDGINGS = 600
"""Newest judgings that are read."""
MOST_TEXTS = 200
"""Different texts that are compared with each other; rarer ones are left out."""
LONGEST = 300
"""Characters of a text that are compared."""
LOW = 0.7
"""A criterion's score below which its judging's statements are its reasons."""


class StatementPlace(NamedTuple):
    """The place of one statement."""

    judging: int
    polarity: str
    position: int

    def __str__(self) -> str:
        return f"{self.judging}:{self.polarity}:{self.position}"

    @classmethod
    def of(cls, text: str) -> StatementPlace | None:
        """Return the reference written so; None for another text."""
        judging, _, rest = text.partition(":")
        polarity, _, position = rest.partition(":")
        known = polarity in ("negative", "positive", "criterion", "verdict")
        is_number = judging.isascii() and judging.isdecimal() and position.isascii() and position.isdecimal()
        if not (known and is_number and len(judging) < 19 and len(position) < 6):
            return None
        return cls(int(judging), polarity, int(position))


@dataclass(frozen=True)
class QueueFilters(AddressFilters):
    """Filters of the queue; empty ones match everything."""

    suite: str = ""
    tool_version: str = ""
    guidance: str = ""
    criterion: str = ""
    judge: str = ""
    """`JudgeVersion.value`."""
    unreviewed: str = ""


@dataclass
class Wording:
    """One exact text, with the places where a judge wrote it."""

    text: str
    key: str = ""
    """The SHA-256 hash of the normalized text."""
    references: list[StatementPlace] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)


@dataclass
class StatementGroup:
    """Statements of similar wording."""

    polarity: str
    """`negative`, `positive`, or `criterion` for a judge's reasons for a criterion."""
    wordings: list[Wording]
    reviews: list[Review] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Return the most frequent wording."""
        return self.wordings[0].text

    @property
    def kind(self) -> str:
        """Return the word for its statements."""
        return {"negative": "issue", "positive": "highlight"}.get(self.polarity, "reason")

    @property
    def references(self) -> list[StatementPlace]:
        return [reference for wording in self.wordings for reference in wording.references]

    @property
    def trials(self) -> list[int]:
        return list(dict.fromkeys(trial for wording in self.wordings for trial in wording.trials))

    @property
    def words(self) -> list[tuple[str, int]]:
        """Return how often each opinion was given, most frequent first."""
        return Counter(each.word for each in self.reviews).most_common()

    @property
    def reviewed(self) -> int:
        """Return how many of its statements somebody reviewed."""
        return len({(each.judging_id, each.position) for each in self.reviews})


class ReadContent(Struct, gc=False):
    """The fields read from a judging."""

    negatives: list[str] = []
    positives: list[str] = []
    criteria: dict[str, float] = {}
    reasons: dict[str, str] = {}

    def statements(self, criterion: str = "") -> list[tuple[str, int, str]]:
        """Return polarity, position and text of the statements; of a criterion, its reason and what names it.

        If the judge said nothing of the criterion itself, all its statements are its reasons.
        """
        sides = (("negative", self.negatives), ("positive", self.positives))
        every = [(side, n, text) for side, texts in sides for n, text in enumerate(texts)]
        if criterion not in self.criteria:
            return every
        reason = self.reasons.get(criterion, "")
        reasons = [("criterion", sorted(self.criteria).index(criterion), reason)] if reason else []
        named = [
            (side, n, texts[n]) for side, texts in sides for n in statements_about(criterion, reason, texts)
        ]
        return reasons + named or every


read_content = msgspec.json.Decoder(ReadContent).decode


@dataclass(frozen=True)
class QueueChoices:
    """Values that the filters offer, from the newest runs."""

    tools: list[str]
    guidances: list[tuple[str, str]]
    criteria: list[str]


def review_queue(project: Project, filters: QueueFilters) -> tuple[list[StatementGroup], QueueChoices]:
    """Return the groups of the newest judged runs, most frequent first, and the filters' choices. Three queries."""
    runs = Run.objects.filter(project=project).select_related("guidance").defer("guidance__files")
    if filters.suite:
        runs = runs.filter(suite__slug=filters.suite)
    recent = list(runs.only("pk", "tool_version", "guidance__name", "guidance__number")[: 5 * MOST_RUNS])
    chosen = [run.pk for run in recent if _matches(run, filters)][:MOST_RUNS]
    judgings = _judgings(chosen, filters.judge)
    criteria = sorted({name for _, _, content in judgings for name in content.criteria})
    if filters.criterion:
        judgings = [each for each in judgings if each[2].criteria.get(filters.criterion, 1.0) < LOW]
    groups = group_statements(judgings, filters.criterion)
    _add_reviews(groups)
    if filters.unreviewed:
        groups = [group for group in groups if not group.reviewed]
    guidances = dict.fromkeys((str(run.guidance_id), str(run.guidance)) for run in recent if run.guidance)
    tools = sorted({run.tool_version for run in recent if run.tool_version})
    return groups, QueueChoices(tools, list(guidances), criteria)


def _matches(run: Run, filters: QueueFilters) -> bool:
    tool, guidance = filters.tool_version, filters.guidance
    return (not tool or run.tool_version == tool) and (not guidance or str(run.guidance_id) == guidance)


Read = tuple[int, int, ReadContent]
"""Key of a judging, its trial, and what it says."""


def _judgings(runs: Sequence[int], judge: str) -> list[Read]:
    rows = JudgingRecord.objects.filter(trial__run__in=runs, trial__round=0, counts=True)
    if (version := JudgeVersion.of(judge)) is not None:
        rows = rows.filter(model=version.model, rubric=version.rubric)
    newest = rows.order_by("-pk").values_list("pk", "trial", Cast("content", TextField()))[:MOST_JUDGINGS]
    return [(pk, trial, read_content(text)) for pk, trial, text in newest]


def group_statements(judgings: Iterable[Read], criterion: str = "") -> list[StatementGroup]:
    """Return the statements, those of a criterion if it is named, in groups of similar wording, most frequent first.

    A wording joins the group whose first wording is most similar, if it reaches `SIMILAR`; frequent ones come first.
    """
    # Of all pages, only those of reviewers need it.
    from rapidfuzz import fuzz, process

    exact: dict[tuple[str, str], Wording] = {}
    for pk, trial, content in judgings:
        for polarity, position, text in content.statements(criterion):
            shown = " ".join(text.split())
            plain = shown.casefold().rstrip(".! ")
            wording = exact.setdefault((polarity, plain), Wording(shown))
            wording.key = wording.key or sha256(plain.encode("utf-8", "replace")).hexdigest()
            wording.references.append(StatementPlace(pk, polarity, position))
            wording.trials.append(trial)
    ordered = sorted(exact.items(), key=lambda item: -len(item[1].references))[:MOST_TEXTS]
    groups: dict[str, dict[str, StatementGroup]] = {"negative": {}, "positive": {}, "criterion": {}}
    for (polarity, key), wording in ordered:
        own_groups, words = groups[polarity], " ".join(sorted(key[:LONGEST].split()))
        similar = process.extractOne(words, own_groups.keys(), scorer=fuzz.ratio, score_cutoff=SIMILAR)
        if similar is None:
            own_groups[words] = StatementGroup(polarity, [wording])
        else:
            own_groups[similar[0]].wordings.append(wording)
    every = [group for by_words in groups.values() for group in by_words.values()]
    return sorted(every, key=lambda group: -len(group.references))


def _add_reviews(groups: Sequence[StatementGroup]) -> None:
    """Give each group its reviews. One query."""
    places = {place: group for group in groups for place in group.references}
    judgings = {place.judging for place in places}
    rows = Review.objects.filter(judging__in=judgings) if judgings else Review.objects.none()
    for row in rows.select_related("by"):
        group = places.get(StatementPlace(row.judging_id, row.polarity, row.position))
        if group is not None:
            group.reviews.append(row)
