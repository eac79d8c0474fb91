"""`grade_again`: grade a run's stored trials again."""

from __future__ import annotations

from runs.engine.stored_trials.adopting import ReassessCommand


class Command(ReassessCommand):
    help = (
        "Grade a run's stored trials again with the newest version of their gates and assertions, without an agent; "
        "nothing counts before it is adopted."
    )
    examples = ("12", "12 --adopt")
    kind = "grade"
