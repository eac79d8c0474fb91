"""What `judge_again` and `grade_again` share."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from evalhub.lib.numbers import counted, money
from runs.engine.stored_trials.adopting import adopt
from runs.engine.stored_trials.reassessed import comparisons
from runs.engine.stored_trials.reassessing import reassess, request_reassessment
from runs.engine.stored_trials.reassessment_plan import estimate_reassessment, ready_rubric
from runs.errors import RequestError
from runs.models import Job, Run
from runs.workers.job_runner import run_job
from scenarios.commands import FAILED, EvalhubCommand, Refused, Result, acting_user


class ReassessCommand(EvalhubCommand):
    """Assess a run's stored trials again in this process."""

    kind = ""

    def arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, metavar="RUN", help="number of the run")
        parser.add_argument("--plan", action="store_true", help="print calls and estimated cost, and stop")
        parser.add_argument("--adopt", action="store_true", help="make the new scores count")

    def work(self, options: dict[str, Any]) -> Result:
        run = Run.objects.select_related("project", "suite_version").filter(pk=options["run"]).first()
        if run is None:
            raise Refused(f"There is no run {options['run']}.", id="run/unknown")
        try:
            return self._assess(run, options)
        except RequestError as error:
            raise Refused(str(error), id=error.id) from error

    def _assess(self, run: Run, options: dict[str, Any]) -> Result:
        rubric = options.get("rubric") or ""
        plan = estimate_reassessment(run, self.kind, ready_rubric(rubric))
        cost = "unknown" if plan.cost_usd is None else money(plan.cost_usd)
        text = f"{counted(plan.trials, 'trial')}, {counted(plan.calls, 'judge call')}, estimated cost {cost}."
        blind = [
            f"{ungraded.scenario}, {counted(ungraded.trials, 'trial')} not graded: {ungraded.reason} Needed by {', '.join(ungraded.checks)}."
            for ungraded in plan.not_graded
        ]
        if options["plan"]:
            return Result("\n".join([text, *blind]), {"plan": asdict(plan)})
        reassessment = request_reassessment(
            run,
            self.kind,
            by=acting_user(),
            judge_model=options.get("judge_model") or "",
            rubric=rubric,
            max_usd=options.get("max_usd"),
            wakes=False,
        )
        run_job(Job.objects.get(kind=Job.Kind.REASSESSMENT, subject=reassessment.pk).pk, reassess)
        result = next(each for each in comparisons(run) if each.made.pk == reassessment.pk)
        lines = [text, f"{result.changed} of {counted(len(result.pairs), 'outcome')} differ."]
        lines += [
            f"{pair.key} {pair.trial}: {pair.before} → {pair.after or 'unchanged'}{f'  {pair.note}' if pair.note else ''}"
            for pair in result.pairs
            if pair.changed or pair.note
        ]
        if result.made.error:
            lines.append(result.made.error)
        elif options["adopt"]:
            lines.append(f"Adopted the scores of {counted(adopt(result.made, by=acting_user()), 'trial')}.")
        else:
            lines.append("Nothing counts yet. Adopt the scores on the run's page or with --adopt.")
        document = {
            "reassessment": reassessment.pk,
            "plan": asdict(plan),
            "cost_usd": result.made.cost_usd,
            "error": result.made.error,
            "trials": [vars(pair) for pair in result.pairs],
        }
        return Result("\n".join(lines), document, FAILED if result.made.error else 0)
