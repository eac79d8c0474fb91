"""Judgings, and reviews of them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone

from runs.models.trial import Trial


class JudgingRecord(models.Model):
    """One judge call; judging again adds one, and it counts only after a person adopts it."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="judgings")
    counts = models.BooleanField(default=True)
    name = models.CharField(max_length=120, default="judge")
    """The evaluator that called the judge, if a scenario has several."""
    score = models.FloatField(null=True)
    passed = models.BooleanField(null=True)
    model = models.CharField(max_length=200, blank=True)
    rubric = models.CharField(max_length=12, blank=True, default="", db_default="")
    """The hash of its rubric or prompt; with the model, the judge's version. Empty if unknown."""
    content = models.JSONField(default=dict)
    """`Judging` as JSON, without the columns here."""
    cost_usd = models.FloatField(null=True)
    created = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["id", "trial"], name="judged_again", condition=models.Q(counts=False)),
        ]

    def __str__(self) -> str:
        return f"judging {self.pk}"


class ReviewWord(models.TextChoices):
    """A person's opinion of a judge's statement."""

    AGREE = "agree"
    DISAGREE = "disagree"
    UNCLEAR = "unclear"


class Review(models.Model):
    """A person's opinion of one statement of a judge."""

    judging = models.ForeignKey(JudgingRecord, on_delete=models.CASCADE, related_name="reviews")
    polarity = models.CharField(max_length=10)
    """`negative` (issues, misses), `positive` (highlights, hits), `criterion` (scores, sorted by id) or `verdict`."""
    position = models.PositiveIntegerField()
    word = models.CharField(max_length=10, choices=ReviewWord.choices)
    note = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judging", "polarity", "position", "by"], name="one_word_each"),
        ]

    def __str__(self) -> str:
        return f"{self.word} with {self.judging}"
