"""Read the answer of the rubric judge (llm-tool-test evaluation, Structured Output)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from evaluators.json_values import refuse_constant
from evaluators.judges.rubric import REASONS, Rubric
from evaluators.model import Json

MISMATCH = 0.02
"""The largest accepted difference between the reported and the computed score."""

FIELDS = ("scores", "weighted_score", "confidence", "issues", "highlights")
"""The fields of the specification's answer, required unless the rubric names others."""

_MAX_CHARACTERS = 200_000
_MAX_OBJECTS = 200
_MAX_BRACKETS = 1_000
"""Brackets in a text to repair; the time grows with their square."""
_BRACE = re.compile(r"\{")


class BadReply(ValueError):
    """The answer is unusable; the message says why, in a sentence."""


class Reply(Struct, frozen=True):
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


def first_object(text: str, *, repair: bool = True, field: str = "") -> dict[str, Json] | None:
    """Return the first JSON object in a text, with this field if one is given, else None.

    `repair` also accepts broken JSON, with or without the field.
    """
    text = text[:_MAX_CHARACTERS]
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    for tried, brace in enumerate(_BRACE.finditer(text)):
        if tried >= _MAX_OBJECTS:
            break
        try:
            value, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and (not field or field in value):
            return value
    return _repaired(text) if repair else None


def _repaired(text: str) -> dict[str, Json] | None:
    if "{" not in text or text.count("{") + text.count("[") > _MAX_BRACKETS:
        return None
    try:
        # Imported here because most answers are valid JSON.
        import json_repair

        value: Json = json_repair.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    found = value if isinstance(value, list) else [value]
    return next((one for one in found if isinstance(one, dict) and one), None)


def read_reply(text: str, rubric: Rubric) -> Reply:
    """Return the answer in a text, validated against the rubric. Raises `BadReply`."""
    # An answer that is cut off has a whole object inside: its scores.
    found = first_object(text, field="scores") or first_object(text)
    if found is None:
        raise BadReply("The answer contains no JSON object.")
    return validated_reply(found, rubric)


def validated_reply(found: Mapping[str, Json], rubric: Rubric) -> Reply:
    """Return a decoded answer, validated against the rubric. Raises `BadReply`.

    Criteria without a score are listed; the weights of the others are scaled up.
    """
    required = {"scores", "weighted_score", *(rubric.require_fields or FIELDS)}
    absent = [name for name in (*FIELDS, REASONS) if name in required and found.get(name) is None]
    if absent:
        raise BadReply(f"The answer lacks {', '.join(absent)}.")
    own, unknown = _scores(found["scores"], rubric)
    reported = _unit(found["weighted_score"], "weighted_score")
    recomputed = weighted(own, rubric)
    confidence = found.get("confidence")
    return Reply(
        scores=own,
        weighted_score=reported,
        confidence=None if confidence is None else _unit(confidence, "confidence"),
        reasons=_reasons(found.get(REASONS), own),
        issues=_sentences(found.get("issues"), "issues"),
        highlights=_sentences(found.get("highlights"), "highlights"),
        recomputed=recomputed,
        missing=tuple(one.id for one in rubric.criteria if one.id not in own),
        mismatch=recomputed is not None and abs(reported - recomputed) > MISMATCH + 1e-9,
        warnings=tuple(f"'{name}' is not a criterion of the rubric and was ignored." for name in unknown),
    )


def weighted(scores: Mapping[str, float], rubric: Rubric) -> float | None:
    """Return the weighted mean of the scored criteria; None if all their weights are 0."""
    weights = {one.id: one.weight for one in rubric.criteria if one.id in scores}
    total = sum(weights.values())
    return sum(scores[name] * weight for name, weight in weights.items()) / total if total > 0 else None


def _scores(given: Json, rubric: Rubric) -> tuple[dict[str, float], list[str]]:
    """Return the scores of the rubric's criteria, and unknown names."""
    if not isinstance(given, Mapping):
        raise BadReply("'scores' must map criteria to numbers.")
    known = {one.id for one in rubric.criteria}
    own = {name: _unit(value, f"scores.{name}") for name, value in given.items() if name in known}
    if known and not own:
        raise BadReply(f"No criterion has a score: {', '.join(sorted(known))}.")
    return own, [name for name in given if name not in known]


def _reasons(given: Json, known: Mapping[str, float]) -> dict[str, str]:
    """Return the reasons of scored criteria; anything else is ignored, because the answer is usable without."""
    named = given.items() if isinstance(given, Mapping) else ()
    return {
        name: why.strip() for name, why in named if name in known and isinstance(why, str) and why.strip()
    }


def _unit(value: Json, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReply(f"'{where}' is not a number.")
    if not 0 <= value <= 1:
        raise BadReply(f"'{where}' is {value}, outside 0 to 1.")
    return float(value)


def _sentences(value: Json, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise BadReply(f"'{where}' is not a list of sentences.")
    return tuple(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in value)
