"""A project's own model prices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.core.validators import MinValueValidator
from django.db import models

from evalhub.teams.models import Project
from evaluators.model import Price


class ModelPrice(models.Model):
    """The price of a model from a date, in US dollars per million tokens. Later rows replace earlier ones; none is changed."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="model_prices")
    model = models.CharField(max_length=200)
    """A litellm id, or the model's name without the provider before the slash."""
    input_per_million = models.FloatField(validators=[MinValueValidator(0.0)])
    output_per_million = models.FloatField(validators=[MinValueValidator(0.0)])
    cache_read_per_million = models.FloatField(null=True, validators=[MinValueValidator(0.0)])
    """None where it isn't known; cached tokens are charged in full then. So with the rates below."""
    cache_write_per_million = models.FloatField(null=True, validators=[MinValueValidator(0.0)])
    cache_write_1h_per_million = models.FloatField(null=True, validators=[MinValueValidator(0.0)])
    reasoning_per_million = models.FloatField(null=True, validators=[MinValueValidator(0.0)])
    since = models.DateField(default=date.today)

    class Meta:
        ordering = ["model", "-since"]
        constraints = [
            models.UniqueConstraint(fields=["project", "model", "since"], name="one_price_a_day"),
            models.CheckConstraint(
                condition=models.Q(input_per_million__gte=0, output_per_million__gte=0),
                name="price_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} since {self.since}"

    @property
    def value(self) -> Price:
        """The price as evaluators use it."""
        return Price(
            self.model,
            self.input_per_million,
            self.output_per_million,
            "project",
            self.since.isoformat(),
            **{name: getattr(self, name) for name in OPTIONAL_RATES},
        )


OPTIONAL_RATES = (
    "cache_read_per_million",
    "cache_write_per_million",
    "cache_write_1h_per_million",
    "reasoning_per_million",
)
"""Rates that a price may lack, as `Price` and a project's price name them."""


def prices_of(project_id: int, config: Mapping[str, Any] | None = None) -> tuple[Price, ...]:
    """Return all of a project's own prices, and for other models those of a suite's settings file.

    The file gives prices per 1,000 tokens (llm-tool-test evaluation, Not In Scope: configured rates).
    """
    project_prices = tuple(row.value for row in ModelPrice.objects.filter(project=project_id))
    known = {price.model for price in project_prices}
    rates = ((config or {}).get("models") or {}).items()
    return project_prices + tuple(
        Price(
            name,
            _per_million(rate, "input") or 0.0,
            _per_million(rate, "output") or 0.0,
            "suite",
            since="",
            **{field: _per_million(rate, field.removesuffix("_per_million")) for field in OPTIONAL_RATES},
        )
        for name, rate in rates
        if not {name, name.partition("/")[2] or name} & known
    )


def _per_million(rate: Mapping[str, Any], name: str) -> float | None:
    per_thousand = rate.get(f"{name}_cost_per_1k_tokens")
    return None if per_thousand is None else per_thousand * 1000
