"""Reads what a judge answered (llm-tool-test evaluation, Structured Output)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import Struct

from evaluators.json_values import refuse_constant
from evaluators.judges.rubric import Rubric
from evaluators.model import Json

MISMATCH = 0.02
"""How far the reported score may lie from the one by the weights before it is flagged."""

FIELDS = ("scores", "weighted_score", "confidence", "issues", "highlights")

_LONGEST = 200_000
_MOST_OBJECTS = 200
_MOST_NESTED = 1_000
"""Brackets in a text that is mended; the time it takes grows with their square."""
_BRACE = re.compile(r"\{")


class BadReply(ValueError):
    """The answer cannot be used; the message says why, in a sentence."""


class Reply(Struct, frozen=True):
    """A judge's answer that holds what it must."""

    scores: dict[str, float]
    weighted_score: float
    """As the judge reported it."""
    confidence: float | None = None
    issues: tuple[str, ...] = ()
    highlights: tuple[str, ...] = ()
    recomputed: float | None = None
    """By the rubric's weights over the criteria that were scored."""
    missing: tuple[str, ...] = ()
    mismatch: bool = False
    warnings: tuple[str, ...] = ()


def first_object(text: str, *, mend: bool = True) -> dict[str, Json] | None:
    """Return the first JSON object in a text that decodes, mended only where none does; else None.

    Without `mend` nothing is mended.
    """
    text = text[:_LONGEST]
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    for tried, brace in enumerate(_BRACE.finditer(text)):
        if tried >= _MOST_OBJECTS:
            break
        try:
            value, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return _mended(text) if mend else None


def _mended(text: str) -> dict[str, Json] | None:
    if "{" not in text or text.count("{") + text.count("[") > _MOST_NESTED:
        return None
    try:
        # Loaded for the first answer that is no JSON.
        import json_repair

        value: Json = json_repair.loads(text[text.index("{") :])
    except (ValueError, RecursionError):
        return None
    found = value if isinstance(value, list) else [value]
    return next((one for one in found if isinstance(one, dict) and one), None)


def read_reply(text: str, rubric: Rubric) -> Reply:
    """Return the answer in a text, checked against the rubric. Raises `BadReply`."""
    found = first_object(text)
    if found is None:
        raise BadReply("There is no JSON object in the answer.")
    return checked(found, rubric)


def checked(found: Mapping[str, Json], rubric: Rubric) -> Reply:
    """Return a decoded answer, checked against the rubric. Raises `BadReply`.

    Criteria that were not scored are listed and the weights of the others stand for the whole.
    """
    required = {"scores", "weighted_score", *(rubric.require_fields or FIELDS)}
    absent = [name for name in FIELDS if name in required and found.get(name) is None]
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
        issues=_sentences(found.get("issues"), "issues"),
        highlights=_sentences(found.get("highlights"), "highlights"),
        recomputed=recomputed,
        missing=tuple(one.id for one in rubric.criteria if one.id not in own),
        mismatch=recomputed is not None and abs(reported - recomputed) > MISMATCH + 1e-9,
        warnings=tuple(f"'{name}' is no criterion of the rubric and was left out." for name in unknown),
    )


def weighted(scores: Mapping[str, float], rubric: Rubric) -> float | None:
    """Return the mean of the criteria scored, by their weights normalised; None where these are 0."""
    weights = {one.id: one.weight for one in rubric.criteria if one.id in scores}
    total = sum(weights.values())
    return sum(scores[name] * weight for name, weight in weights.items()) / total if total > 0 else None


def _scores(given: Json, rubric: Rubric) -> tuple[dict[str, float], list[str]]:
    """Return the scores of the rubric's criteria, and the names that are none."""
    if not isinstance(given, Mapping):
        raise BadReply("'scores' is not an object of criterion and number.")
    known = {one.id for one in rubric.criteria}
    own = {name: _unit(value, f"scores.{name}") for name, value in given.items() if name in known}
    if known and not own:
        raise BadReply(f"None of the criteria is scored: {', '.join(sorted(known))}.")
    return own, [name for name in given if name not in known]


def _unit(value: Json, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadReply(f"'{where}' is not a number.")
    if not 0 <= value <= 1:
        raise BadReply(f"'{where}' is {value}, which lies outside 0 to 1.")
    return float(value)


def _sentences(value: Json, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise BadReply(f"'{where}' is not a list of sentences.")
    return tuple(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in value)
