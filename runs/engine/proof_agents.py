"""The agents of a proof, as targets of a run: one that does nothing, and a script that solves the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from evalhub.lib.numbers import format_money
from evaluators.model import Complete, Completion, CompletionError, CompletionRequest
from runs.engine.context import RunContext
from runs.models import Run, Target
from runs.models.run_options import RunOptions
from runs.sandbox.safe_paths import write_beneath
from runs.sandbox.sandbox import Containment
from runs.targets.agents.cli import Cli, CliOptions
from runs.targets.providers.base import Availability, Invocation, Provider, Recording
from runs.targets.providers.mock import Mock, MockOptions
from runs.targets.providers.options import ResolvedTarget
from scenarios.formats.parsed import FixtureFile
from scenarios.models import SuiteVersion

NOT_ASKED = "A proof without a budget asks no judge."
NONSENSE = "Purple seventeen, the kettle of Tuesday sleeps under nine quiet forks."
"""An answer to no question, which no judge may pass."""
_SCRIPT = "agent.sh"
# The shell prints each command after "$ ", so that a solution has a transcript even if its tools are silent.
_SOLUTION = f"PS4='$ ' EVENTS_FILE={{EVENTS_FILE}} sh -x \"$LLM_TOOL_TEST_RESULTS_DIR\"/{_SCRIPT}"


@dataclass(frozen=True)
class ProofContext(RunContext):
    """The context of a proof's trials: nothing is stored, and a judge is asked only if it is given."""

    keeps_files: bool = False
    judge: Complete | None = None

    @property
    def solution_changes(self) -> Mapping[int, frozenset[str]]:
        """Nothing: a proof finds out."""
        return {}

    @cached_property
    def complete(self) -> Complete:
        """The given judge, else one that refuses, so that what only a judge decides has no score."""
        return self.judge or _refuse


def _refuse(request: CompletionRequest) -> Completion:
    raise CompletionError(NOT_ASKED)


@dataclass
class JudgeBudget:
    """A judge that is asked until it has cost so much."""

    ask: Complete
    max_usd: float
    spent: float = 0.0
    is_unpriced: bool = False
    """It answered without a cost."""

    @property
    def why_stopped(self) -> str:
        """Return why it can't be asked any more; empty if it can."""
        if self.is_unpriced:
            return "The judge reports no cost, so no budget can be kept. Add a price for its model in the settings."
        return (
            ""
            if self.spent < self.max_usd
            else f"The judges' budget of {format_money(self.max_usd)} is spent."
        )

    def __call__(self, request: CompletionRequest) -> Completion:
        """Return the judge's answer. Raises `CompletionError` if the budget is spent or can't be kept."""
        if self.why_stopped:
            raise CompletionError(self.why_stopped)
        answer = self.ask(request)
        if answer.cost_usd is None:
            self.is_unpriced = True
            raise CompletionError(self.why_stopped)
        self.spent += answer.cost_usd
        return answer


class ScriptAgent:
    """Runs a shell script in the workspace, as `cli` runs an agent's program.

    Its standard output is the answer. It may write structured events to `$EVENTS_FILE`.
    """

    works_in_folder = True

    def __init__(self, script: str, target: ResolvedTarget, containment: Containment) -> None:
        self._script = script.encode()
        self._cli = Cli(target, containment)

    def check(self) -> Availability:
        """Return whether the sandbox allows a start."""
        return self._cli.check()

    def invoke(self, invocation: Invocation) -> Recording:
        """Run the script. Raises `ProviderError` if it can't start or, without a workspace, fails."""
        write_beneath(invocation.scratch, _SCRIPT, self._script, replace=True)
        return self._cli.invoke(invocation)


@dataclass(frozen=True)
class ProofSetting:
    """Where proofs run: the suite, the worker's containment and the variables of its environment."""

    version: SuiteVersion
    containment: Containment
    variables: dict[str, str]
    guidance: tuple[FixtureFile, ...] = ()
    fixture_names: frozenset[str] = frozenset()
    judge: JudgeBudget | None = None
    """Asked where nothing else decides; None asks no judge."""

    def idle_agent(self, answer: str = "", *, judged: bool = False) -> RunContext:
        """Return the context of an agent that does nothing and gives this answer."""
        target = ResolvedTarget("null agent", "mock", MockOptions(response=answer))
        return self._context(target, lambda limits: Mock(target, limits), judged=judged)

    def solution(self, script: str, *, judged: bool = False) -> RunContext:
        """Return the context of a reference solution."""
        target = ResolvedTarget("reference solution", "cli", CliOptions(command_template=_SOLUTION))
        return self._context(target, lambda limits: ScriptAgent(script, target, limits), judged=judged)

    def _context(
        self, target: ResolvedTarget, make: Callable[[Containment], Provider], *, judged: bool
    ) -> RunContext:
        run = Run(suite_version=self.version, target=Target(name=target.name))
        return ProofContext(
            run=run,
            options=RunOptions(),
            target=target,
            provider=make(self.containment.for_target(target.options)),
            variables=self.variables,
            guidance=self.guidance,
            fixture_names=self.fixture_names,
            judge=self.judge if judged else None,
        )
