"""Sum up the tokens of an imported run; runs of evalhub count theirs trial by trial."""

from __future__ import annotations

from django.db.models import Sum

from runs.models import Run


def sum_tokens(run: Run) -> list[str]:
    """Set a run's tokens to those of its trials, and return the names of the changed fields, unsaved. One query."""
    sums = run.trial_set.aggregate(read=Sum("tokens_in"), written=Sum("tokens_out"))
    run.tokens_in, run.tokens_out = sums["read"] or 0, sums["written"] or 0
    return ["tokens_in", "tokens_out"]
