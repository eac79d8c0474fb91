"""The forms of a suite's release rule and of its proofs."""

from __future__ import annotations

from django import forms

from runs.results.release_rule import MOST_TRIALS


class ReleaseRuleForm(forms.Form):
    """A suite's release rule: k, and the least mean pass^k in percent."""

    k = forms.IntegerField(
        min_value=1,
        max_value=MOST_TRIALS,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            f"Trials: enter a number from 1 to {MOST_TRIALS:,}.",
        ),
    )
    percent = forms.FloatField(
        min_value=0.1,
        max_value=100,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            "Threshold: enter a percentage from 0.1 to 100.",
        ),
    )


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
