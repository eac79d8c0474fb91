"""What people ask for when they start runs, whichever way they do: REST, the form, the command.

An option is declared once, here or in `AskedOptions`. REST's schema, the form's field, the command's option and the line
that the form shows *As a command* follow from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen
from pydantic import AfterValidator, ConfigDict, Field

from evalhub.lib.storable_text import Text, storable_text
from evalhub.teams.models import priority_named
from evalhub.web.rest.request_body import Name
from runs.errors import RequestError
from runs.launch.lift import LIFT_OPTIONS, drop_triggers, lift_arms
from runs.launch.request import Request
from runs.models.run_options import (
    AMOUNT,
    LABELS,
    SCENARIOS,
    TARGETS,
    Asked,
    AskedBaseline,
    AskedDollars,
    AskedJudgeModel,
    AskedOptions,
    AskedSeconds,
    RunOptions,
    Selection,
)
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.models import Guidance, SuiteVersion

Names = list[Name]
FewNames = Annotated[Names, Field(max_length=50)]


class RunRequest(AskedOptions):
    """What to run of suites that are named elsewhere, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    targets: Annotated[Names, Asked(TARGETS, "name of a target", flag="--target", in_form=False)] = []
    models: Annotated[
        Names,
        Asked(
            TARGETS,
            "model for the target",
            flag="--model",
            hint="Default: the target's own.",
        ),
    ] = []
    profile: Annotated[
        Text,
        Field(max_length=200),
        Asked(
            TARGETS, "targets and models of a profile in the suite's llm-tool-test-config.toml", in_form=False
        ),
    ] = ""
    """A profile of the suites' settings, in place of targets and models."""
    tags: Annotated[
        Names,
        Asked(
            SCENARIOS,
            "comma-separated, any may match; repeat to require all",
            label="Scenario tags",
            hint="Any may match.",
        ),
    ] = []
    tier: Annotated[
        int | None, Field(ge=0, le=1000), Asked(SCENARIOS, "scenarios up to this tier", label="Up to tier")
    ] = None
    only: Annotated[
        Names,
        Asked(
            SCENARIOS,
            "key of a scenario",
            metavar="KEY",
            label="Only these scenarios",
        ),
    ] = []
    timeout_seconds: Annotated[AskedSeconds, Field(le=86_400)] = None
    """For scenarios without their own limit."""
    max_usd: Annotated[AskedDollars, Field(le=1_000_000)] = None
    """Budget of the launch: once its runs cost this much, no further trial starts."""
    previous: Annotated[
        Text,
        Field(max_length=1000),
        Asked(
            AMOUNT,
            "with --lift: the skill's previous version, which runs as a third arm: a folder with SKILL.md, a guidance"
            " version, or none (default: the last stored version with another skill)",
            metavar="PATH-or-version",
            in_form=False,
        ),
    ] = ""
    """With `lift`: number, name or hash of the guidance whose skill runs as a third arm, or `none`.

    Default: the last stored version with another skill.
    """
    judge_model: Annotated[AskedJudgeModel, Field(max_length=200), AfterValidator(storable_text)] = ""
    baseline: Annotated[AskedBaseline, Field(max_length=40), AfterValidator(storable_text)] = ""
    """A run's number or UUID, or last-pass. Default: the pinned baseline."""
    tool_version: Annotated[
        Text,
        Field(max_length=200),
        Asked(
            LABELS,
            "version of the tool, if no command of the suite reports it",
            hint="If no command of the suite reports it.",
        ),
    ] = ""
    branch: Annotated[
        Text,
        Field(max_length=200),
        Asked(LABELS, "branch of the tool's repository", hint="Branch of the tool's repository."),
    ] = ""
    commit: Annotated[
        Text,
        Field(max_length=64),
        Asked(LABELS, "commit of the tool's repository", hint="Commit of the tool's repository."),
    ] = ""
    run_tags: Annotated[Names, Asked(LABELS, "tag of the run", flag="--run-tag")] = []
    priority: Annotated[
        Literal["low", "normal", "high"],
        Asked(AMOUNT, "which launches of the project get its lanes first (default: normal)", in_form=False),
    ] = "normal"
    """Which launches of the project get its lanes first; high is for admins."""

    def resolve(
        self,
        suite_versions: Sequence[SuiteVersion],
        guidance: Sequence[Guidance],
        *,
        strict: bool = False,
        shard: tuple[int, int] | None = None,
        previous_files: GuidanceFiles = (),
        benchmarks: Mapping[str, Mapping[str, float]] | None = None,
        **found: Any,
    ) -> Request:
        """Return the request for these suites and guidance. `found` are options that files or addresses gave.

        `previous_files` are those of the skill that `previous` names, if it names a folder; `benchmarks` is
        `Request.benchmarks`. Raises `RequestError` if the
        lift of a suite without a skill is asked for, and for a previous version without a lift.
        """
        asked = {name: getattr(self, name) for name in AskedOptions.model_fields}
        if self.lift:
            asked |= LIFT_OPTIONS
            suite_versions = drop_triggers(suite_versions)
            guidance = lift_arms(suite_versions, guidance, previous_files or self.previous)
        elif self.previous:
            raise RequestError("--previous (previous) is an arm of a lift. Add --lift (lift).")
        found["shard"] = "/".join(map(str, shard or ()))
        selection = {"tags": tuple(self.tags), "tier": self.tier, "only": tuple(self.only)}
        return Request(
            suite_versions=suite_versions,
            strict=strict,
            guidance=guidance,
            selection=Selection(**selection, shard=shard or (1, 1)),
            options=RunOptions(**{**asked, **found}),
            labels=self.model_dump(include={"tool_version", "branch", "commit"}) | {"tags": self.run_tags},
            priority=priority_named(self.priority),
            benchmarks=benchmarks or {},
            **self.model_dump(include={"targets", "models", "profile"}),
        )


class LimitedRequest(RunRequest):
    """What a server takes: every combination of targets and models becomes a run."""

    targets: FewNames = []
    models: FewNames = []
    tags: FewNames = []
    only: Annotated[Names, Field(max_length=1000)] = []
    run_tags: FewNames = []


@dataclass(frozen=True)
class AskedField:
    """A field of `RunRequest`, with how it is asked for."""

    name: str
    kind: type
    """`bool`, `int`, `float`, `str` or `list`."""
    default: Any
    asked: Asked
    least: float | None
    most: float | None
    above: float | None
    """What it must be more than."""
    longest: int | None
    choices: tuple[str, ...]

    @property
    def flag(self) -> str:
        """The command's option."""
        prefix = "--no-" if self.default is True else "--"
        return self.asked.flag or prefix + self.name.replace("_", "-")


def asked_fields() -> Iterator[AskedField]:
    """Yield the fields of `RunRequest` in order."""
    for name, info in RunRequest.model_fields.items():
        by_type = {type(each): each for each in info.metadata}
        is_choice = get_origin(info.annotation) is Literal
        yield AskedField(
            name,
            str if is_choice else _kind_of(info.annotation),
            info.default,
            by_type[Asked],
            getattr(by_type.get(Ge), "ge", None),
            getattr(by_type.get(Le), "le", None),
            getattr(by_type.get(Gt), "gt", None),
            getattr(by_type.get(MaxLen), "max_length", None),
            get_args(info.annotation) if is_choice else (),
        )


def _kind_of(annotation: Any) -> type:
    """Return the type of a field, `int` for an optional one."""
    if get_origin(annotation) is list:
        return list
    kind: type = next((each for each in get_args(annotation) if each is not type(None)), annotation)
    return kind
