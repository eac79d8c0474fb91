"""Hints at rates of a settings file that look like list prices per million tokens in fields per thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scenarios.formats.llm_tool_test.scenario_models import SettingsFile
from scenarios.formats.positions import PositionedDocument
from scenarios.formats.problems import Problem

RateOf = Callable[[str, str], float | None]
"""Returns a model's known rate per million tokens, by its name and `input` or `output`; None for an unknown one."""

ABOVE_ALL = {"input": 0.5, "output": 1.0}
"""US dollars per 1,000 tokens that no list price reaches: the dearest models cost 0.15 and 0.6."""
_FACTOR = 1000
_ABOUT = (300, 3000)
"""The ratios to a known rate that count as a thousand times, because list prices change."""
ID = "format/rate-per-million"


def rate_hints(
    settings_file: SettingsFile, document: PositionedDocument, rate_of: RateOf | None = None
) -> Iterator[Problem]:
    """Yield a hint for each rate that is about a thousand times a known one, without known ones for impossible rates."""
    for model, rates in settings_file.models.items():
        for direction, impossible in ABOVE_ALL.items():
            name = f"{direction}_cost_per_1k_tokens"
            rate: float = getattr(rates, name)
            known = rate_of(model, direction) if rate_of else None
            if why := _why(rate, known, impossible):
                yield document.problem(
                    ("models", model, name),
                    f"{rate:g} USD per 1,000 tokens is {why}.",
                    fix=f"If it is a price per million tokens, write {rate / _FACTOR:g}.",
                    id=ID,
                    lint=True,
                )


def _why(rate: float, known: float | None, impossible: float) -> str:
    if known:
        least, most = _ABOUT
        is_about = least <= rate * _FACTOR / known <= most
        return f"{round(rate * _FACTOR / known):,} times litellm's price" if is_about else ""
    return "more than any model's list price" if rate >= impossible else ""
