"""The two agents of a proof, as targets of a run: one that does nothing, and a script that solves the task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from evaluators.model import Complete, Completion, CompletionError, CompletionRequest
from runs.containment.beneath import write_beneath
from runs.containment.sandbox import Containment
from runs.execution.context import RunContext
from runs.models import Run, Target
from runs.models.run_options import RunOptions
from runs.providers.base import Availability, Invocation, Provider, Recording
from runs.providers.cli import Cli, CliOptions
from runs.providers.mock import Mock, MockOptions
from runs.providers.options import ResolvedTarget
from scenarios.formats.parsed import FixtureFile
from scenarios.models import SuiteVersion

NOT_ASKED = "A proof asks no judge."
_SCRIPT = "solution.sh"
# The shell prints each command after "$ ", so that a solution has a transcript even if its tools are silent.
_COMMAND = f"PS4='$ ' EVENTS_FILE={{EVENTS_FILE}} sh -x \"$LLM_TOOL_TEST_RESULTS_DIR\"/{_SCRIPT}"


@dataclass(frozen=True)
class ProofContext(RunContext):
    """The context of a proof's trials: nothing is stored, and no judge is asked."""

    keeps_files: bool = False

    @cached_property
    def complete(self) -> Complete:
        """A judge that refuses, so that what only a judge decides has no score."""
        return _refuse


def _refuse(request: CompletionRequest) -> Completion:
    raise CompletionError(NOT_ASKED)


class ReferenceSolution:
    """Runs a solution's script in the workspace, as `cli` runs an agent's program.

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
class Setting:
    """Where proofs run: the suite, the worker's containment and the variables of its environment."""

    version: SuiteVersion
    containment: Containment
    variables: dict[str, str]
    guidance: tuple[FixtureFile, ...] = ()
    fixture_names: frozenset[str] = frozenset()

    def null_agent(self) -> RunContext:
        """Return the context of an agent that does nothing and says nothing."""
        target = ResolvedTarget("null agent", "mock", MockOptions(response=""))
        return self._context(target, lambda limits: Mock(target, limits))

    def solution(self, script: str) -> RunContext:
        """Return the context of a reference solution."""
        target = ResolvedTarget("reference solution", "cli", CliOptions(command_template=_COMMAND))
        return self._context(target, lambda limits: ReferenceSolution(script, target, limits))

    def _context(self, target: ResolvedTarget, make: Callable[[Containment], Provider]) -> RunContext:
        run = Run(suite_version=self.version, target=Target(name=target.name))
        return ProofContext(
            run=run,
            options=RunOptions(),
            target=target,
            provider=make(self.containment.for_target(target.options)),
            variables=self.variables,
            guidance=self.guidance,
            fixture_names=self.fixture_names,
        )
