"""Options of a run: how people ask for them, and what is stored with the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from evaluators.model import Json
from scenarios.tool_descriptions import ToolDescriptions

DEFAULT_SECONDS = 300.0
"""Default time limit of an agent (as in llm-tool-test)."""


@dataclass(frozen=True)
class Asked:
    """How people give a value: as an option of `run_scenarios`, and in the form of a new run."""

    group: str
    """The group of the command's help."""
    help: str
    """The help of the command's option."""
    flag: str = ""
    """The option; `--` and the field's name by default, `--no-` for a yes."""
    metavar: str | None = None
    label: str = ""
    """The label in the form, if it isn't the field's name."""
    hint: str = ""
    """What the form says below the field."""
    example: str = ""
    """What the form proposes to somebody who entered no number."""
    in_form: bool = True


TARGETS, SCENARIOS, LABELS = "on what", "what to run", "labels stored with the run"
AMOUNT, JUDGE, COMPARISON, OUTPUT = "how many, how long", "judge", "compare with", "output"
AskedJudgeModel = Annotated[
    str,
    Asked(
        JUDGE,
        "target or model to judge with; default: the recommended model of a provider whose key is set",
        hint="A target or a model. Default: the scenario's, else the target's judge.",
    ),
]
AskedBaseline = Annotated[
    str,
    Asked(
        COMPARISON,
        "run or file of results to compare with (default: the pinned baseline, else the newest finished run)",
        metavar="RUN|UUID|FILE|last-pass",
        label="Other baseline",
        hint="A run number or last-pass; replaces the choice in the list.",
    ),
]
AskedSeconds = Annotated[
    float | None,
    Field(gt=0, allow_inf_nan=False),
    Asked(
        AMOUNT,
        "time limit of scenarios without one",
        label="Time limit, seconds",
        hint="For scenarios without their own limit.",
        example="a number of seconds, such as 120",
    ),
]
AskedDollars = Annotated[
    float | None,
    Field(gt=0, allow_inf_nan=False),
    Asked(
        AMOUNT,
        "start no further trial once the runs cost this much",
        metavar="USD",
        label="Budget, USD",
        hint="No further trial starts once the runs cost this much.",
        example="an amount in US dollars, such as 2.50",
    ),
]


class AskedOptions(BaseModel):
    """The options of a run that people give. Times in seconds."""

    trials: Annotated[
        int, Field(ge=1, le=1000), Asked(AMOUNT, "trials per scenario (default: 1)", label="Trials each")
    ] = 1
    until_decided: Annotated[
        bool,
        Asked(
            AMOUNT,
            "add trials in up to four looks, first to undecided scenarios, until a verdict against the baseline, the"
            " limit, or little hope of one; two --guidance are looked at together",
        ),
    ] = False
    """Add trials in up to four looks, first to undecided scenarios, until a verdict, the limit, or little hope of one.

    `trials` above 1 are the first look's, else a quarter of the most. Two versions of guidance are looked at together.
    """
    max_trials: Annotated[
        int | None,
        Field(ge=1, le=1000),
        Asked(
            AMOUNT,
            "with --until-decided: most trials per scenario of each run (default: 12, at least 4 times --trials,"
            " which are those of the first look if above 1, else a quarter)",
            metavar="N",
            label="Most trials",
            hint="Of each scenario, until a verdict. Default: 12, at least 4 times the first look's.",
        ),
    ] = None
    """With `until_decided`: most trials of each scenario of each run. Default: 12, at least 4 times `trials`."""
    lift: Annotated[
        bool,
        Asked(
            AMOUNT,
            "run the suite's skill, no skill and its previous version in turn, judged blind to which, until decided what the"
            " skill adds",
            label="Lift",
        ),
    ] = False
    """Run the suite's skill, no skill and its previous version in turn, as experiments judged blind to which."""
    retest: Annotated[
        bool, Asked(AMOUNT, "run no scenario again that looks worse than in earlier runs", label="Retest")
    ] = True
    """Run scenarios again that look worse than in earlier runs, after the first trials; the fresh trials decide."""
    concurrency: Annotated[
        int | None,
        Field(ge=1, le=1000),
        Asked(
            AMOUNT,
            "trials at once (default: the target's workers, else 1)",
            label="At once",
            hint="Default: the target's setting.",
        ),
    ] = None
    timeout_seconds: AskedSeconds = None
    """For scenarios without their own limit."""
    max_usd: AskedDollars = None
    """Budget of the launch: once its runs cost this much, no further trial starts."""
    judge: Annotated[bool, Asked(JUDGE, "skip the judge")] = True
    judge_model: AskedJudgeModel = ""
    """A target's name or a model id; empty means the default judge."""
    threshold: Annotated[
        float | None,
        Field(ge=0, le=1),
        Asked(
            JUDGE,
            "lowest mean of evaluators that passes, 0 to 1 (default: the suite's, else 1)",
            hint="Lowest mean of evaluators that passes, 0 to 1. Default: the suite's.",
            example="a number from 0 to 1, such as 0.8",
        ),
    ] = None
    """The mean of evaluators that a trial needs to pass; overrides the suite's."""
    baseline: AskedBaseline = ""
    """A run's number or UUID, or last-pass. Default: the pinned baseline."""
    experiment: Annotated[bool, Asked(COMPARISON, "compare it, but never as a baseline or alert")] = False
    """Compared like others, but never a baseline and never an alert."""
    verbose: Annotated[
        bool, Asked(OUTPUT, "print a line for each trial on a terminal too", in_form=False)
    ] = False
    """Store warnings about what makes no difference to the results, too."""


class RunOptions(AskedOptions):
    """Options stored with the run as JSON, so that all workers read the same."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    baseline_note: str = ""
    """What a reader must know of a baseline that is a file, in a sentence."""
    baseline_file: Json = None
    """Of runs of older releases: `run_id` and `passed` by case of an EvalSuiteResult on disk."""
    shard: str = ""
    """Which part of its suite the run is, such as 1/3; empty for all of it."""
    fail_on_regression: bool = False
    """Whether its command fails for a regression, so that several versions of guidance are a test of the last one."""
    retest_arms: tuple[int, ...] = ()
    """Of several versions of guidance whose broken scenarios are run again in turn: their runs, the one compared with
    first."""
    benchmark: dict[str, float] = {}
    """Of a lift: the mean share of statements by configuration, as the skill's benchmark.json says."""
    expected_tool: str | None = None
    """The only tool version that the run accepts; None accepts any."""
    seed: Json = None
    snapshot: Json = None
    registry: Json = None
    snapshot_source: str = ""
    """An address or a command that returns the snapshot just before the run; empty to use `snapshot`."""
    descriptions: ToolDescriptions | None = None
    """Texts that the proxy of an MCP server puts in place of the server's own."""
    surface: str = ""
    """The hash of what the MCP servers under test show, as of preparation (`ToolHelp`)."""
    packages: dict[str, int] = {}
    """Bytes of the packages that the command of an MCP server fetched before the run, by the server's name."""
    registry_source: str = ""
    """An address or a command that returns the registry, likewise."""

    def without_looks(self) -> RunOptions:
        """Return the options of a run that repeats trials of this one once."""
        return self.model_copy(update={"until_decided": False, "max_trials": None, "retest_arms": ()})

    def agent_seconds(self, of_scenario: float | None) -> float:
        """Return an agent's time limit: the scenario's, else the request's; the target may have a shorter one."""
        return of_scenario or self.timeout_seconds or DEFAULT_SECONDS


class Selection(BaseModel):
    """The selected scenarios of a suite version: those that meet all conditions."""

    model_config = ConfigDict(frozen=True)

    tags: tuple[str, ...] = ()
    """Each entry is a comma-separated list; a scenario needs one tag of every entry."""
    tier: int | None = Field(default=None, ge=0)
    """Scenarios up to and including this tier."""
    only: tuple[str, ...] = ()
    """Keys."""
    shard: tuple[int, int] = (1, 1)
    """Which part of what meets the other conditions, and how many parts there are."""

    def takes(self, *, key: str, tags: tuple[str, ...], tier: int) -> bool:
        """Return whether a scenario is selected."""
        if self.only and key not in self.only:
            return False
        if self.tier is not None and tier > self.tier:
            return False
        return all({word.strip() for word in entry.split(",")} & set(tags) for entry in self.tags)
