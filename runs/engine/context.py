"""The data that the trials of a run share. A lane loads it once and passes it to its trials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from evaluators.grading.evaluate import LAYERS, Criteria, Layer
from evaluators.grading.judges.rubric import RubricCriteria as RubricCriteria
from evaluators.model import Complete, Json
from evaluators.statistics.staleness import Registry
from evaluators.tool_use.diagnosis import Thresholds
from evaluators.tool_use.mcp_record import McpSurface, decode_surfaces
from evaluators.tool_use.tool import Tool
from runs.db import statements
from runs.engine.batch_answers import with_batch_answers
from runs.engine.judges import layers_for, make_judge
from runs.engine.workspace.judging_files import JudgingFiles, named_by_judging
from runs.engine.workspace.tool_variables import refuse_missing_variables, trial_variables
from runs.engine.workspace.workspace import LocalWorkspace, TrialFolder
from runs.models import Run, ToolHelp
from runs.models.price import prices_of
from runs.models.run_options import RunOptions
from runs.models.usage import MCP
from runs.results.diagnosis_thresholds import read_thresholds
from runs.results.validations import solution_changes
from runs.sandbox.outbound import Outbound
from runs.sandbox.worker_settings import containment, variables_of
from runs.targets.definitions import resolve_target
from runs.targets.providers.base import Provider
from runs.targets.providers.options import ResolvedTarget
from runs.targets.providers.registry import make_provider
from scenarios.formats.parsed import Fixture as FixtureFiles
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.guidance import split_tool
from scenarios.models import Fixture, Rubric, ScenarioVersion
from scenarios.spec import ScenarioSpec
from scenarios.storing import files_hash, guidance_files, joint_hash, unpack
from scenarios.tool_variables import named_in_headers, named_variables, resolve_env


@dataclass(frozen=True)
class RunContext:
    """A run with the data that its trials share."""

    run: Run
    options: RunOptions
    target: ResolvedTarget
    provider: Provider
    variables: Mapping[str, str]
    guidance: GuidanceFiles
    fixture_names: frozenset[str]
    warnings: tuple[str, ...] = ()
    keeps_files: bool = True
    """Whether the files of its trials are stored."""

    @property
    def model(self) -> str:
        """The model under test: the run's choice, else the target's."""
        return self.run.model or self.target.options.asked_model

    @property
    def outbound(self) -> Outbound:
        """The rules for outbound addresses."""
        return containment().outbound

    @property
    def seed(self) -> Json:
        """The seed manifest: the request's, else the suite's, else None."""
        seed = self.options.seed
        return seed if seed is not None else self.run.suite_version.config.get("seed")

    @cached_property
    def registry(self) -> Registry | None:
        """The tool registry as of preparation; None without one."""
        registry = self.options.registry
        return msgspec.convert(registry, Registry) if registry is not None else None

    @cached_property
    def complete(self) -> Complete | None:
        """The judge; None if the request disables it."""
        return make_judge(self.run, self.target, self.options, self.variables) if self.options.judge else None

    @cached_property
    def thresholds(self) -> Thresholds:
        """From where a trial's metrics count as high."""
        return read_thresholds(self.run.project if self.run.project_id else None, before=self.run.pk).limits

    @cached_property
    def layers(self) -> Sequence[Layer]:
        """The layers that judge its trials."""
        # A proof's run belongs to no project.
        return layers_for(self.run.project) if self.run.project_id else LAYERS

    @cached_property
    def surfaces(self) -> Mapping[str, McpSurface]:
        """What the MCP servers under test show, by name, as of preparation."""
        if not self.options.surface:
            return {}
        stored = ToolHelp.objects.get(
            project=self.run.project, binary=MCP, tool_version=self.options.surface, subcommand=""
        )
        return {each.server: each for each in decode_surfaces(stored.text)}

    @cached_property
    def solution_changes(self) -> Mapping[int, frozenset[str]]:
        """Executed files that reference solutions change, by scenario version, as proofs found them."""
        return solution_changes(self.run.suite_version)

    @cached_property
    def judging(self) -> JudgingFiles:
        """What the scenarios of the suite's upload name to judge with."""
        version = self.run.suite_version
        if version.pk is None:
            return JudgingFiles()
        versions = version.scenario_versions.all()
        if version.source_id is not None:
            versions = ScenarioVersion.objects.filter(suite_versions__source=version.source_id)
        files = frozenset(versions.values_list("content__file", flat=True))
        contents = versions.filter(content__bundle__isnull=False).values_list(
            "content__criteria__evaluators", "content__criteria__expected_messages"
        )
        named, scripts = named_by_judging(part for row in contents for part in row)
        rubrics = Rubric.objects.filter(pk__in=versions.exclude(rubric=None).values("rubric"))
        return JudgingFiles(
            named | files, scripts, tuple(RubricCriteria.model_validate(each.content) for each in rubrics)
        )

    def prefetch(self) -> None:
        """Read from the database what trials use after their agent, while a lost connection can be retried."""
        _ = self.thresholds, self.layers, self.surfaces, self.solution_changes

    @cached_property
    def shared_pattern(self) -> str:
        """The `command_pattern` of scenarios without one: as of preparation; before, the target's, else the project's."""
        if self.run.fingerprint:
            return str(self.run.fingerprint.get("command_pattern", ""))
        if self.target.options.command_pattern:
            return self.target.options.command_pattern
        # A proof's run belongs to no project, but its suite does.
        project = self.run.project if self.run.project_id else self.run.suite_version.suite.project
        if not (project and project.command_pattern):
            return ""
        lacks_one = any(not (tool.mcp or tool.command_pattern) for tool, _ in self.tools)
        return project.command_pattern if lacks_one else ""

    def criteria_of(self, criteria: Criteria) -> Criteria:
        """Return a scenario's criteria with the pattern that finds its tool's commands."""
        tool = criteria.tool or Tool()
        if tool.mcp or tool.command_pattern or not self.shared_pattern:
            return criteria
        return criteria.model_copy(
            update={"tool": tool.model_copy(update={"command_pattern": self.shared_pattern})}
        )

    @cached_property
    def tools(self) -> tuple[tuple[Tool, FixtureFiles], ...]:
        """The tools of the run's scenarios, each with the fixture of its first scenario."""
        entries = self.run.suite_version.entries.exclude(scenario_version__content__criteria__tool=None)
        rows = entries.order_by("position").values_list(
            "scenario_version__fixture", "scenario_version__content__criteria__tool"
        )
        first: dict[str, int | None] = {}
        for fixture, tool in rows:
            first.setdefault(json.dumps(tool, sort_keys=True), fixture)
        return tuple((Tool.model_validate_json(tool), load_fixture(pk)) for tool, pk in first.items())

    @cached_property
    def tool_files_hash(self) -> str:
        """The hash of the tools that lie in the fixtures; empty if none does."""
        hashes = {
            files_hash(tool_files) for tool, files in self.tools if (tool_files := split_tool(files, tool)[1])
        }
        return joint_hash(hashes)

    def workspace(
        self, folder: TrialFolder, tool: Tool | None = None, *, scenario: str = ""
    ) -> LocalWorkspace:
        """Return a workspace for commands and gates, with evalhub's variables and the resolved `target.env`.

        Raises `ProviderError` for a variable that is missing.
        """
        env = tool.env if tool else {}
        refuse_missing_variables(env, self.variables)
        bare = LocalWorkspace(
            folder.workspace,
            folder.scratch,
            containment().for_target(self.target.options),
            secrets=self.secrets(tool),
            tool=tool.binary if tool else "",
            record=folder.record,
        )
        trial_env = trial_variables(
            bare, folder, scenario=scenario, agent=self.run.target.name, model=self.model
        )
        return replace(
            bare, env=trial_env | resolve_env(env, {**self.variables, **bare.variables, **trial_env})
        )

    def secrets(self, tool: Tool | None) -> tuple[str, ...]:
        """Return the secret values to mask in everything stored."""
        named = {variable for _, variable in named_variables(tool.env if tool else {})}
        if tool and tool.mcp:
            named |= {variable for _, variable in named_in_headers(tool.mcp.headers)}
        return (*self.target.secrets, *(self.variables[name] for name in named if name in self.variables))


def load_run(run_id: int) -> RunContext:
    """Return the run's context. Raises `ProviderError` if its target cannot be used."""
    related = ("project", "target", "target_version", "guidance", "suite_version__suite", "suite")
    run = Run.objects.select_related(*related).get(pk=run_id)
    variables = variables_of(run.project)
    target = resolve_target(run.target, variables, run.target_version)
    if run.suite_version.config.get("models"):
        target = replace(target, prices=prices_of(run.project_id, run.suite_version.config))
    carrying = run.suite_version.scenario_versions.exclude(fixture=None)
    rows = carrying.values_list("content__fixture", "content__bundle")
    return RunContext(
        run=run,
        options=RunOptions.model_validate(run.options),
        target=target,
        provider=with_batch_answers(
            make_provider(target, containment().for_target(target.options)), target, run_id
        ),
        variables=variables,
        guidance=guidance_files(run.guidance),
        fixture_names=frozenset(fixture or bundle for fixture, bundle in rows),
    )


def load_scenario(scenario_version_id: int) -> tuple[ScenarioSpec, int | None]:
    """Return a scenario version's content, and the key of its fixture for `load_fixture`."""
    content, fixture_id = statements.scenario_content(scenario_version_id)
    return ScenarioSpec.model_validate_json(content), fixture_id


def load_fixture(fixture_id: int | None) -> FixtureFiles:
    """Return the initial files of a scenario's workspace, without guidance; nothing for None."""
    return unpack(bytes(Fixture.objects.get(pk=fixture_id).archive)) if fixture_id else ()
