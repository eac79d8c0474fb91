"""Rubrics, and the answer of the judge that uses one (llm-tool-test evaluation, Structured Output)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Literal, SupportsIndex

from msgspec import Struct
from pydantic import Field

from evalhub.lib.limits import LONGEST_TEXT
from evaluators.json_values import refuse_constant
from evaluators.model import Amount, Json, StrictModel, Text

PREFIX = "evalhub:"
"""`rubric: evalhub:guidance` in a scenario names a shipped rubric."""


REASONS = "reasons"
"""The optional field of a judge's answer with a reason for each criterion; `require_fields` asks for it."""
DEFAULT_THRESHOLD = 0.7
"""For a rubric on scenarios without a judge of their own."""


def hash_of(text: str) -> str:
    """Return the hash of a rubric's or prompt's text, short enough to read."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Criterion(StrictModel):
    """One weighted criterion of a rubric."""

    id: Text
    """The criterion's name in the judge's answer."""
    weight: Amount
    """Its share of the score; all add up to 1."""
    description: str = ""
    """What the judge checks."""


class RubricCriteria(StrictModel):
    """Weighted criteria for a judge; weights stay as written and are normalized on use."""

    name: str = ""
    criteria: tuple[Criterion, ...]
    require_fields: tuple[str, ...] = ()
    form: Literal["scores", "statements"] = "scores"
    """Whether each criterion gets a score, or is a statement that holds or doesn't; the share that hold is the score."""
    expected: str = ""
    """What success looks like, for a judge of statements."""

    @property
    def short_hash(self) -> str:
        """The hash of what the judge is asked: criteria with weights and descriptions, not the name."""
        asked = "\n".join(f"{one.id}\t{one.weight!r}\t{one.description}" for one in self.criteria)
        if self.form == "statements":
            return hash_of(f"{asked}\n{self.form}\n{self.expected}")
        return hash_of(f"{asked}\n{REASONS}" if self.asks_reasons else asked)

    @property
    def asks_reasons(self) -> bool:
        """Whether the judge is asked for a reason for each criterion."""
        return REASONS in self.require_fields


class JudgeCriteria(StrictModel):
    """The judge of a scenario (`evaluation.judge`)."""

    enabled: bool = True
    """Whether the judge is asked; one that is off needs no rubric."""
    rubric: RubricCriteria
    pass_threshold: float
    model: str = ""
    """A target's name or a model; empty for the project's."""
    when: Literal["always", "gates_pass"] = "always"
    """`gates_pass` saves the cost of judging trials that failed."""
    judgings: Annotated[int, Field(ge=1, le=20)] = 1
    """Calls of the judge for each trial; their mean counts."""
    on_mismatch: Literal["warn", "error"] = "warn"
    """Whether an answer whose total contradicts its weighted criteria counts by its total, or is unusable."""


READY = {
    "guidance": RubricCriteria(
        name="evalhub:guidance",
        require_fields=("scores", "weighted_score", "confidence", "issues", "highlights", REASONS),
        criteria=(
            Criterion(
                id="documentation_sufficiency",
                weight=0.5,
                description="Did the LLM appear to have sufficient information from the provided documentation to "
                "complete the task without confusion?",
            ),
            Criterion(
                id="workflow_clarity",
                weight=0.5,
                description="Did the LLM follow a logical workflow, or did it seem to discover the correct approach "
                "through trial and error?",
            ),
        ),
    )
}
"""Criteria of llm-tool-test's evaluation for guidance authors."""


MISMATCH = 0.02
"""The largest accepted difference between the reported and the computed score."""

FIELDS = ("scores", "weighted_score", "confidence", "issues", "highlights")
"""The fields of the specification's answer, required unless the rubric names others."""

_MAX_OBJECTS = 200
_MAX_READS = 500_000
"""How often a repair may read a character: usually a few times each, but some texts take the square of their length."""
_BRACE = re.compile(r"\{")
_DIGITS = "-+.0123456789"
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_AFTER_THOUGHTS = re.compile(r"\s*(?:\n|\{|```|\Z)")
"""What follows thoughts whose opening tag the model's server swallowed, and no tag that a JSON text quotes."""
_BARE_PLACEHOLDER = re.compile(r'(?<=[:,\[ ])<(?![\d.]+>)[^<>"\n]*>')
_PLACEHOLDER = re.compile(r"<[^<>]+>")
"""How the prompt shows what belongs in a field; small models copy it."""


class BadReply(ValueError):
    """The answer is unusable; the message says everything that is wrong, a sentence each."""

    def __init__(self, message: str, *, scored: bool = False) -> None:
        super().__init__(message)
        self.scored = scored
        """Whether the answer scores criteria, so that correcting it needs no second look at the trial."""


class RubricReply(Struct, frozen=True):
    """A valid answer of a judge."""

    scores: dict[str, float]
    weighted_score: float
    """As the judge reported it."""
    confidence: float | None = None
    reasons: dict[str, str] = {}
    """By criterion; optional unless the rubric requires it."""
    issues: tuple[str, ...] = ()
    highlights: tuple[str, ...] = ()
    recomputed: float | None = None
    """Computed from the rubric's weights over the scored criteria."""
    missing: tuple[str, ...] = ()
    mismatch: bool = False
    warnings: tuple[str, ...] = ()


def without_thoughts(text: str) -> str:
    """Return a model's answer without its `<think>` blocks, which may hold drafts of it.

    A closing tag alone ends thoughts that began with the answer. An answer that begins with a block and never
    closes it has only thoughts; a later tag without an end is text.
    """
    parts: list[str] = []
    start, opened = 0, -1
    for tag in _THOUGHT.finditer(text):
        if not tag[1]:
            if opened < 0:
                parts.append(text[start : tag.start()])
                opened = tag.start()
        elif opened >= 0:
            start, opened = tag.end(), -1
        elif _AFTER_THOUGHTS.match(text, tag.end()):
            parts.clear()
            start = tag.end()
    if opened < 0:
        return "".join((*parts, text[start:]))
    before = "".join(parts)
    return before + text[opened:] if before.strip() else ""


def first_object(text: str, *, repair: bool = True, fields: Collection[str] = ()) -> dict[str, Json] | None:
    """Return the first JSON object after a model's thoughts that has these fields, if any are given, else None.

    `repair` also accepts broken JSON, with or without the fields.
    """
    text = without_thoughts(text)[:LONGEST_TEXT]
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    for tried, brace in enumerate(_BRACE.finditer(text)):
        if tried >= _MAX_OBJECTS:
            break
        try:
            value, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and all(value.get(name) is not None for name in fields):
            return value
    return _repair(text) if repair else None


class _LimitedText(str):
    """A text that raises `ValueError` once its characters were read too often."""

    left = _MAX_READS

    def __getitem__(self, key: SupportsIndex | slice, /) -> str:
        self.left -= 1
        if self.left < 0:
            raise ValueError("takes too long to repair")
        return super().__getitem__(key)


def _repair(text: str) -> dict[str, Json] | None:
    if "{" not in text:
        return None
    try:
        # Imported here because most answers are valid JSON.
        import json_repair

        # Repairing would read 0.0 from the placeholder <0.0 to 1.0>, and 0 where the text ends within 0.75.
        quoted = _BARE_PLACEHOLDER.sub(r'"\g<0>"', text[text.index("{") :])
        value: Json = json_repair.loads(_LimitedText(quoted.rstrip().rstrip(_DIGITS)))
    except (ValueError, RecursionError):
        return None
    candidates = value if isinstance(value, list) else [value]
    return next((one for one in candidates if isinstance(one, dict) and one), None)


def read_reply(text: str, rubric: RubricCriteria) -> RubricReply:
    """Return the answer in a text, validated against the rubric: the first complete one. Raises `BadReply`."""
    # An answer that is cut off has a whole object inside: its scores.
    answer = (
        first_object(text, repair=False, fields=required_fields(rubric))
        or first_object(text, fields=("scores",))
        or first_object(text)
    )
    if answer is None:
        raise BadReply("The answer contains no JSON object.")
    return validated_reply(answer, rubric)


def required_fields(rubric: RubricCriteria) -> frozenset[str]:
    """Return the fields without which an answer is unusable."""
    return frozenset(("scores", "weighted_score", *(rubric.require_fields or FIELDS))) & {*FIELDS, REASONS}


def validated_reply(answer: Mapping[str, Json], rubric: RubricCriteria) -> RubricReply:
    """Return a decoded answer, validated against the rubric. Raises `BadReply` with all problems.

    Criteria without a score are listed; the weights of the others are scaled up.
    """
    problems: list[str] = []
    fields = {name: value for name, value in answer.items() if value is not None}
    required = required_fields(rubric)
    absent = [name for name in (*FIELDS, REASONS) if name in required and name not in fields]
    if absent:
        problems.append(f"The answer lacks {', '.join(absent)}.")
    scores, unknown = _scores(fields["scores"], rubric, problems) if "scores" in fields else ({}, [])
    problems += [f"'{name}' belongs next to 'scores', not in it." for name in absent if name in unknown]
    reported = _unit(fields.get("weighted_score", 0), "weighted_score", problems)
    confidence = _unit(fields["confidence"], "confidence", problems) if "confidence" in fields else None
    issues = _sentences(fields.get("issues", []), "issues", problems)
    highlights = _sentences(fields.get("highlights", []), "highlights", problems)
    if problems:
        raise BadReply(
            " ".join(problems), scored=any(_says_something(answer["scores"][name]) for name in scores)
        )
    recomputed = weigh_criteria(scores, rubric)
    return RubricReply(
        scores=scores,
        weighted_score=reported,
        confidence=confidence,
        reasons=_reasons(fields.get(REASONS), scores),
        issues=issues,
        highlights=highlights,
        recomputed=recomputed,
        missing=tuple(one.id for one in rubric.criteria if one.id not in scores),
        mismatch=recomputed is not None and abs(reported - recomputed) > MISMATCH + 1e-9,
        warnings=tuple(f"'{name}' is not a criterion of the rubric and was ignored." for name in unknown),
    )


def describe_contradiction(reported: float, recomputed: float) -> str:
    """Return how a judge's total and its weighted criteria differ, in a sentence."""
    return (
        f"The judge reported {reported:.2f}, but its criteria give {recomputed:.2f} by the rubric's weights."
    )


def weigh_criteria(scores: Mapping[str, float], rubric: RubricCriteria) -> float | None:
    """Return the weighted mean of the scored criteria; None if all their weights are 0."""
    weights = {one.id: one.weight for one in rubric.criteria if one.id in scores}
    total = sum(weights.values())
    return sum(scores[name] * weight for name, weight in weights.items()) / total if total > 0 else None


def _scores(scores: Json, rubric: RubricCriteria, problems: list[str]) -> tuple[dict[str, float], list[str]]:
    """Return the scores of the rubric's criteria, 0 for one that isn't a score, and unknown names."""
    if not isinstance(scores, Mapping):
        problems.append("'scores' must map criteria to numbers.")
        return {}, []
    known = {one.id for one in rubric.criteria}
    known_scores = {
        name: _unit(value, f"scores.{name}", problems) for name, value in scores.items() if name in known
    }
    if known and not known_scores:
        problems.append(f"No criterion has a score: {', '.join(sorted(known))}.")
    return known_scores, [name for name in scores if name not in known]


def _reasons(reasons: Json, known: Mapping[str, float]) -> dict[str, str]:
    """Return the reasons of scored criteria; anything else is ignored, because the answer is usable without."""
    named = reasons.items() if isinstance(reasons, Mapping) else ()
    return {
        name: why.strip()
        for name, why in named
        if name in known and isinstance(why, str) and why.strip() and not copies_placeholder(why)
    }


def _unit(value: Json, where: str, problems: list[str]) -> float:
    """Return a number from 0 to 1; anything else is a problem and 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        problems.append(f"'{where}' is not a number.")
    elif not 0 <= value <= 1:
        problems.append(f"'{where}' is {value}, outside 0 to 1.")
    else:
        return float(value)
    return 0.0


def _sentences(value: Json, where: str, problems: list[str]) -> tuple[str, ...]:
    sentences = [value] if isinstance(value, str) else value
    if not isinstance(sentences, list):
        problems.append(f"'{where}' is not a list of sentences.")
        return ()
    if any(map(copies_placeholder, sentences)):
        problems.append(f"'{where}' repeats the placeholder; write your own sentences, or [] for none.")
    texts = (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in sentences)
    return tuple(text for text in texts if text.strip())


def _says_something(score: Json) -> bool:
    """Return whether a score, valid or not, is a judgement: "high" and 8 are, a placeholder or a list is not."""
    return isinstance(score, str | int | float) and not copies_placeholder(score)


def copies_placeholder(value: Json) -> bool:
    """Return whether a value is a placeholder that the prompt shows, copied."""
    return isinstance(value, str) and bool(_PLACEHOLDER.fullmatch(value.strip()))
