"""What one claim asks for, with everything that is needed to do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from evaluators.criteria import Criteria
from runs.claims import Claim
from runs.context import RunContext, fixture_of, load_run, load_scenario
from runs.providers.base import Invocation
from runs.trial_folder import TrialFolder
from runs.workspaces import LocalWorkspace
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import lay_over
from scenarios.spec import ScenarioSpec

DEFAULT_SECONDS = 300.0
"""Time limit of an agent where neither scenario, request nor target has one (that of llm-tool-test)."""


@dataclass(frozen=True)
class Task:
    """One trial to carry out."""

    claim: Claim
    spec: ScenarioSpec
    context: RunContext
    stopped: Callable[[], bool]
    """Whether somebody has cancelled it, or the claim is lost."""

    @property
    def timeout_seconds(self) -> float:
        """The agent's time limit: the scenario's, else the request's; the target may have a tighter one."""
        limits, options = self.spec.limits, self.context.options
        return limits.timeout_seconds or options.timeout_seconds or DEFAULT_SECONDS

    @cached_property
    def criteria(self) -> Criteria:
        """What is asked of this trial: the scenario's criteria, without the judge where the request wants none."""
        criteria = self.spec.criteria
        return criteria if self.context.options.judge else criteria.model_copy(update={"judge": None})

    @property
    def files(self) -> tuple[FixtureFile, ...]:
        """What the workspace starts from: the fixture with the run's guidance laid over it."""
        context = self.context
        fixture = fixture_of(self.claim.scenario_version_id)
        return lay_over(fixture, context.guidance, name=self.spec.fixture or "", names=context.fixture_names)

    @property
    def needs_folder(self) -> bool:
        """Whether anything of the trial happens in a directory; a mock answer that is only read needs none."""
        spec = self.spec
        return (
            self.context.provider.works_in_folder
            or bool(spec.fixture or spec.setup or spec.post)
            or needs_workspace(self.criteria)
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that are masked in whatever is stored of the trial."""
        return self.context.secrets(self.spec.criteria.tool)

    def invocation(self, folder: TrialFolder, env: dict[str, str]) -> Invocation:
        """Return what the provider is asked; `env` is for the agent's process."""
        return Invocation(
            prompt=self.spec.prompt,
            key=self.spec.key,
            workspace=folder.workspace,
            scratch=folder.scratch,
            timeout_seconds=self.timeout_seconds,
            model=self.context.model,
            env=env,
            attempt=self.claim.starts,
            trial=self.claim.index,
            cancelled=self.stopped,
        )

    def script_env(self, folder: TrialFolder, workspace: LocalWorkspace) -> dict[str, str]:
        """Names that scripts know, with paths as they are inside the sandbox (llm-tool-test, Scripts)."""
        inside = workspace.inside
        return {
            "LLM_TOOL_TEST_FIXTURE_DIR": inside(folder.workspace),
            "LLM_TOOL_TEST_RESULTS_DIR": inside(folder.scratch),
            "LLM_TOOL_TEST_SCENARIO": self.spec.key,
            "LLM_TOOL_TEST_AGENT": self.context.run.target.name,
            "LLM_TOOL_TEST_MODEL": self.context.model,
            "LLM_TOOL_TEST_TRANSCRIPT": inside(folder.transcript),
            "LLM_TOOL_TEST_EVENTS": inside(folder.events),
        }


def needs_workspace(criteria: Criteria) -> bool:
    """Tell whether anything that is asked looks into the workspace or runs a command in it."""
    return bool(criteria.scripts) or any(gate.needs_workspace for gate in criteria.gates)


def load(claim: Claim, stopped: Callable[[], bool]) -> Task:
    """Return the claim's task. Raises `ProviderError` where the run's target cannot be used."""
    return Task(claim, load_scenario(claim.scenario_version_id), load_run(claim.run_id), stopped)
