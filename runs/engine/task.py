"""The task of one claim, with everything needed to run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from evalhub.lib.limits import LARGEST_EXIT_CODE, LONGEST_NAME
from evaluators.grading.evaluate import Criteria
from evaluators.grading.scores.composite_evaluator import without_models
from evaluators.redaction import mask_values, redact_patterns
from evaluators.transcripts.latest import LatestCalls
from runs.engine.context import RunContext, load_fixture, load_scenario
from runs.engine.tool.offered_tools import tools_of
from runs.engine.workspace.guidance import make_copies
from runs.engine.workspace.judging_files import commands_of_target, judging_files, may_be_rubric, rubric_files
from runs.engine.workspace.protected_files import ProtectedFiles
from runs.engine.workspace.workspace import TrialFolder
from runs.targets.providers.base import Invocation, PollCalls
from runs.targets.providers.registry import MODELS
from runs.workers.claims import Claim
from scenarios.formats.parsed import FixtureFile
from scenarios.guidance import Guidance, guidance_documents, lay_guidance_over
from scenarios.spec import ScenarioSpec

_REDACTED_CHARACTERS = 20 * LONGEST_NAME
"""Characters that are searched for secrets: well beyond the cut, so that no half of one is stored."""


@dataclass(frozen=True)
class Task:
    """One trial to run."""

    claim: Claim
    spec: ScenarioSpec
    load_files: Callable[[], tuple[FixtureFile, ...]]
    """Returns the scenario's files, without guidance."""
    context: RunContext
    stopped: Callable[[], bool]
    """Returns whether the trial is cancelled or its claim lost."""
    watch: Callable[[PollCalls], None]
    """Called with a function that returns the agent's latest calls, ready to be stored."""

    @property
    def timeout_seconds(self) -> float:
        """The agent's time limit; the target may have a shorter one."""
        return self.context.options.agent_seconds(self.spec.limits.timeout_seconds)

    @cached_property
    def criteria(self) -> Criteria:
        """The scenario's criteria, without judges or with another threshold if requested."""
        criteria, options = self.spec.criteria, self.context.options
        changes: dict[str, Any] = {}
        if options.threshold is not None:
            changes["threshold"] = options.threshold
        if not options.judge:
            changes |= {"judge": None, "evaluators": without_models(criteria.evaluators)}
        return criteria.model_copy(update=changes) if changes else criteria

    @property
    def in_workspace(self) -> bool:
        """Whether the workspace is judged, not only an answer."""
        return not (self.spec.criteria.evaluators or self.spec.criteria.expect)

    @property
    def executes_tools(self) -> bool:
        """Whether the target executes the tools that it calls; a model only names them."""
        return self.context.target.kind not in MODELS

    @property
    def offers_tools(self) -> bool:
        """Return whether the task is a single request for a model's tool calls."""
        return self.criteria.expect is not None and self.spec.stubs is None and not self.executes_tools

    @cached_property
    def _scenario_files(self) -> tuple[FixtureFile, ...]:
        """The scenario's files, with the run's guidance over them."""
        names = self.context.fixture_names
        return lay_guidance_over(
            self.load_files(), self.context.guidance, name=self.spec.worker_fixture, names=names
        )

    @cached_property
    def documents(self) -> Guidance:
        """The run's guidance for this scenario's workspace; of a bundle, what is sent as guidelines."""
        return documents_for(self.context, self.spec)

    @cached_property
    def guidance_copies(self) -> Guidance:
        """Guidance under the name that the target's agent reads; a bundle's is sent in the prompt."""
        if self.spec.bundle or not self.documents:
            return ()
        taken = frozenset(file.path for file in self._scenario_files)
        return make_copies(self.context.target, self.documents, taken)

    @property
    def files(self) -> tuple[FixtureFile, ...]:
        """The initial files of the workspace."""
        return () if self.spec.bundle else (*self._scenario_files, *self.guidance_copies)

    def protected_files(self, folder: TrialFolder) -> ProtectedFiles:
        """Return what keeps the scenario's protected and hidden files."""
        return ProtectedFiles(
            folder.workspace,
            folder.kept,
            protected=self.spec.criteria.protected or (),
            hidden=self.hidden,
            tool=self.spec.criteria.tool,
            guidance={file.path for file in (*self.documents, *self.guidance_copies)},
        )

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Patterns of the workspace's files that the agent must not see: the scenario's, and rubrics."""
        files = () if self.spec.bundle else self._scenario_files
        # To read the suite's rubrics is for the few fixtures that could contain one.
        asked = self.context.judging.rubrics if any(map(may_be_rubric, files)) else ()
        return (*self.spec.hidden, *sorted(rubric_files(files, asked)))

    @property
    def solution_changes(self) -> frozenset[str]:
        """Files that gates execute and the scenario's reference solution changes, as a proof found them."""
        return self.context.solution_changes.get(self.claim.scenario_version_id, frozenset())

    @property
    def bundle(self) -> tuple[FixtureFile, ...] | None:
        """The files beside the workspace that the agent may see; None if there are none."""
        if not self.spec.bundle:
            return None
        return tuple(file for file in self._scenario_files if file.path not in self._judging_paths)

    @property
    def judging_files(self) -> tuple[FixtureFile, ...]:
        """The files beside the workspace that judge, written when the agent has ended."""
        if not self.spec.bundle:
            return ()
        return tuple(file for file in self._scenario_files if file.path in self._judging_paths)

    @cached_property
    def _judging_paths(self) -> frozenset[str]:
        spec, run = self.spec, self.context.run
        definition = (run.target_version or run.target).definition
        return judging_files(
            self._scenario_files,
            self.context.judging,
            folder=spec.folder,
            attachments=(*spec.input_files, *spec.guidelines),
            target=commands_of_target(definition, spec.folder),
        )

    @property
    def guidelines(self) -> str:
        """The texts of the guideline files, as sent to agents."""
        texts = {file.path: file.content.decode("utf-8", "replace") for file in self.bundle or ()}
        return "\n\n".join(
            f'<file path="{PurePosixPath(path).name}">\n{texts[path].strip()}\n</file>'
            for path in self.spec.guidelines
            if path in texts
        )

    @property
    def needs_folder(self) -> bool:
        """Whether the trial needs a directory; a mock answer that is only read needs none."""
        return lays_files(self.context, self.spec) or self.runs_commands

    @property
    def runs_commands(self) -> bool:
        """Whether a command may run after the agent, with the agent's output in a file."""
        return bool(self.spec.post) or needs_workspace(self.criteria)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Secret values to mask in everything stored of the trial."""
        return self.context.secrets(self.spec.criteria.tool)

    def invocation(self, folder: TrialFolder, env: dict[str, str]) -> Invocation:
        """Return the provider's invocation; `env` is for the agent's process."""
        spec = self.spec
        opens_files = self.context.provider.works_in_folder
        return Invocation(
            prompt=(spec.agent_prompt if opens_files else "") or spec.prompt,
            spec=spec,
            workspace=folder.workspace,
            scratch=folder.scratch,
            timeout_seconds=self.timeout_seconds,
            model=self.context.model,
            env=env,
            attempt=self.claim.starts,
            trial=self.claim.index,
            guidelines=self.guidelines,
            files=tuple(folder.bundle / path for path in spec.input_files),
            guideline_files=tuple(folder.bundle / path for path in spec.guidelines),
            bundle=folder.bundle if spec.bundle else None,
            in_workspace=self.in_workspace,
            tools=tools_of(self.context.registry, {}) if self.offers_tools else (),
            cancelled=self.stopped,
            watch=self._watch,
        )

    def _watch(self, read_calls: PollCalls) -> None:
        secrets = self.secrets
        self.watch(lambda: storable_calls(read_calls(), secrets))


def documents_for(context: RunContext, spec: ScenarioSpec) -> Guidance:
    """Return the run's guidance for a scenario's workspace; of a bundle, what is sent as guidelines."""
    documents = guidance_documents(context.guidance, name=spec.worker_fixture, names=context.fixture_names)
    return tuple(file for file in documents if not spec.bundle or file.path in spec.guidelines)


def lays_files(context: RunContext, spec: ScenarioSpec) -> bool:
    """Return whether a trial needs a directory for its files."""
    return context.provider.works_in_folder or bool(spec.fixture or spec.bundle or spec.setup)


def needs_workspace(criteria: Criteria) -> bool:
    """Return whether the criteria read the workspace or run a command in it."""
    looks = any(gate.needs_workspace for gate in criteria.gates)
    return looks or bool(criteria.scripts) or any(each.needs_workspace for each in criteria.evaluators)


def load_task(
    claim: Claim,
    context: RunContext,
    *,
    stopped: Callable[[], bool] = lambda: False,
    watch: Callable[[PollCalls], None] = lambda read_calls: None,
) -> Task:
    """Return the claim's task. What it needs after the agent is read before: the agent's work must not be lost."""
    context.prefetch()
    spec, fixture_id = load_scenario(claim.scenario_version_id)
    spec = spec.model_copy(update={"criteria": context.criteria_of(spec.criteria)})
    return Task(claim, spec, lambda: load_fixture(fixture_id), context, stopped, watch)


def storable_calls(calls: LatestCalls, secrets: Iterable[str]) -> LatestCalls:
    """Return an agent's calls in the form that is stored."""
    if not calls.last:
        return calls
    code = calls.exit_code
    known = code is not None and abs(code) <= LARGEST_EXIT_CODE
    return replace(calls, last=storable_call(calls.last, secrets), exit_code=code if known else None)


def storable_call(call: str, secrets: Iterable[str]) -> str:
    """Return a call on one line of at most `LONGEST_NAME` characters, secrets redacted, with an ellipsis if cut."""
    line = " ".join(mask_values(call, secrets).split())
    redacted = redact_patterns(line[:_REDACTED_CHARACTERS])
    return redacted if len(redacted) <= LONGEST_NAME else f"{redacted[: LONGEST_NAME - 1]}…"
