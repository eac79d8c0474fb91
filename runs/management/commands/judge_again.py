"""`judge_again`: judge a run's stored trials again."""

from __future__ import annotations

from argparse import ArgumentParser

from evaluators.grading.judges.rubric import READY
from runs.engine.stored_trials.adopting import ReassessCommand


class Command(ReassessCommand):
    help = "Judge a run's stored trials again, without an agent; nothing counts before it is adopted."
    examples = ("12 --judge-model openai/gpt-5-mini --max-usd 2", "12 --rubric guidance --plan")
    kind = "judge"

    def arguments(self, parser: ArgumentParser) -> None:
        super().arguments(parser)
        parser.add_argument(
            "--judge-model", default="", metavar="M", help="target or model (default: the run's)"
        )
        parser.add_argument(
            "--rubric",
            default="",
            help=f"a shipped rubric: {', '.join(READY)} (default: each scenario's own)",
        )
        parser.add_argument(
            "--max-usd", type=float, metavar="X", help="stop when the judge has cost X dollars"
        )
