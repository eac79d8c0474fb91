"""The forms of a suite's settings and of its proofs."""

from __future__ import annotations

from typing import Any

from django import forms

MOST_TRIALS = 1000


class SuiteForm(forms.Form):
    """A suite's release rule, which is k and the least mean pass^k in percent or neither, and whether it retests."""

    k = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_TRIALS,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            f"Trials in a row: enter a number from 1 to {MOST_TRIALS:,}.",
        ),
    )
    percent = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=100,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            "Chance: enter a percentage from 0.1 to 100.",
        ),
    )
    retests = forms.BooleanField(required=False)

    def clean(self) -> dict[str, Any]:
        """Return the settings. Refuses half a rule."""
        given = self.cleaned_data
        if not self.errors and (given["k"] is None) != (given["percent"] is None):
            raise forms.ValidationError("A release rule has both numbers: trials in a row, and a chance.")
        return given


class ProofForm(forms.Form):
    """What judges may cost in a proof; empty asks none."""

    max_usd = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=10_000,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"),
            "Judges' budget: enter dollars from 0.01 to 10,000, or nothing.",
        ),
    )
