"""Diagnose a whole run: the patterns of its trials, with the trials, scenarios and commands that show each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from evaluators.tool_use.diagnosis import (
    CLEAR,
    ERRING,
    MOST_QUOTED,
    NOT_FOUND,
    RETRIES,
    Diagnosis,
    Thresholds,
    diagnose,
    is_program_missing,
)
from evaluators.tool_use.interaction import Interaction

_COUNTED = {
    **dict.fromkeys(ERRING, "errors"),
    "help-instead-of-docs": "helps",
    RETRIES: "retries_after_failure",
}
"""Which calls of a subcommand show a pattern; for other patterns, all do."""
_WORDS = {"errors": "failed", "helps": "asked for help", "retries_after_failure": "were retries"}


class DiagnosedTrial(Struct, frozen=True):
    """A trial with its layer 1."""

    pk: int
    scenario: str
    metrics: Interaction
    """Its commands may be only those that failed."""
    messages: dict[int, str] = {}
    """Error messages of failed commands by their number."""
    failed: bool = False
    """Whether the trial failed."""
    quoted: tuple[int, ...] = ()
    """Events of its transcript in which the agent repeated the guidance."""


class DiagnosisThresholds(Struct, frozen=True):
    """From where metrics count as high, and where that comes from."""

    limits: Thresholds = Thresholds()
    history: int = 0
    """Number of earlier runs that set thresholds; 0 for the documented ones."""
    edited: tuple[str, ...] = ()
    """Names of thresholds that the project sets."""

    @property
    def source(self) -> str:
        """Return where the thresholds come from, in a sentence."""
        from_settings = (
            f"the project's settings ({', '.join(self.edited).replace('_', ' ')}), else "
            if self.edited
            else ""
        )
        rest = (
            f"the upper quartile of {self.history} earlier runs"
            if self.history
            else "the documented defaults"
        )
        return f"Thresholds from {from_settings}{rest}."


class CommandShare(Struct, array_like=True, frozen=True):
    """A subcommand whose calls show a pattern, in the trials that show it."""

    name: str
    hits: int
    """Calls that show it."""
    calls: int
    trials: int
    scenarios: int


class Finding(Struct, frozen=True):
    """A diagnosed pattern in some of a run's trials."""

    pattern: str
    sentence: str
    evidence: tuple[str, ...]
    trials: tuple[int, ...]
    scenarios: tuple[str, ...] = ()
    commands: list[CommandShare] = field(default_factory=list)
    """Most calls that show it first; none in digests of older releases."""
    of_trials: int = 0
    """Trials with commands of the tool; 0 in digests of older releases."""
    of_scenarios: int = 0

    @property
    def title(self) -> str:
        return self.pattern.replace("_", " ").replace("-", " ").capitalize()

    @property
    def is_problem(self) -> bool:
        """Return whether the finding asks for a fix."""
        return self.pattern != CLEAR

    @property
    def verb(self) -> str:
        """Return what the counted calls did."""
        # What the calls that show a pattern did: `failed`, `asked for help`, …
        return (
            "were not found"
            if self.pattern == NOT_FOUND
            else _WORDS.get(_COUNTED.get(self.pattern, ""), "calls")
        )


def diagnose_run(trials: Sequence[DiagnosedTrial], limits: Thresholds) -> list[Finding]:
    """Return the patterns that match in any trial, those of most trials first."""
    measured = [trial for trial in trials if trial.metrics.available]
    seen: dict[str, list[tuple[DiagnosedTrial, Diagnosis]]] = {}
    for trial in measured:
        for diagnosis in diagnose(
            trial.metrics, limits, trial.messages, failed=trial.failed, quoted=trial.quoted
        ):
            seen.setdefault(diagnosis.pattern, []).append((trial, diagnosis))
    scenarios = len({trial.scenario for trial in measured})
    findings = [_finding(shown, len(measured), scenarios) for shown in seen.values()]
    return sorted(findings, key=lambda finding: (finding.pattern == CLEAR, -len(finding.trials)))


def _finding(shown: Sequence[tuple[DiagnosedTrial, Diagnosis]], trials: int, scenarios: int) -> Finding:
    diagnosis = shown[0][1]
    shown_trials = [trial for trial, _ in shown]
    return Finding(
        diagnosis.pattern,
        diagnosis.sentence,
        (
            *_evidence([trial.metrics for trial in shown_trials]),
            *_quotes(diagnosed for _, diagnosed in shown),
        ),
        tuple(trial.pk for trial in shown_trials),
        tuple(dict.fromkeys(trial.scenario for trial in shown_trials)),
        _commands(diagnosis.pattern, shown_trials),
        trials,
        scenarios,
    )


def _evidence(metrics: Sequence[Interaction]) -> Iterator[str]:
    total, errors = (
        sum(getattr(each, name) for each in metrics) for name in ("total_commands", "error_count")
    )
    known = total - sum(each.unknown_exit for each in metrics)
    helps, n = sum(each.help_seeking for each in metrics), len(metrics)
    share = f" ({100 * errors / known:.0f} %)" if known else ""
    rest = f"; the end of {total - known} more is unknown" if known < total else ""
    yield f"{errors} of {known} commands failed{share} in these trials{rest}."
    yield f"{helps / n:.1f} help calls and {total / n:.1f} commands per trial."


def _quotes(diagnoses: Iterable[Diagnosis]) -> Iterable[str]:
    """Return the most frequent error messages that the trials' evidence quotes, each with its command."""
    quoted = Counter(line for diagnosis in diagnoses for line in diagnosis.evidence if line.startswith("`"))
    return [line for line, _ in quoted.most_common(MOST_QUOTED)]


def _commands(pattern: str, trials: Sequence[DiagnosedTrial]) -> list[CommandShare]:
    hits, calls = Counter[str](), Counter[str]()
    seen_in: dict[str, set[int]] = {}
    scenarios: dict[str, set[str]] = {}
    for trial in trials:
        for name, shows, called in _hits(pattern, trial):
            hits[name] += shows
            calls[name] += called
            if shows:
                seen_in.setdefault(name, set()).add(trial.pk)
                scenarios.setdefault(name, set()).add(trial.scenario)
    # Commands named by a finding.
    return [
        CommandShare(name, often, calls[name], len(seen_in[name]), len(scenarios[name]))
        for name, often in hits.most_common(8)
        if often
    ]


def _hits(pattern: str, trial: DiagnosedTrial) -> Iterable[tuple[str, int, int]]:
    """Yield each subcommand with its calls that show the pattern, and all its calls."""
    counted, metrics = _COUNTED.get(pattern, "calls"), trial.metrics
    missing = Counter(
        command.subcommand
        for command in metrics.commands
        if is_program_missing(command, trial.messages.get(command.n, ""))
    )
    for subcommand in metrics.subcommands:
        shows = missing[subcommand.name] if pattern == NOT_FOUND else getattr(subcommand, counted)
        yield subcommand.name, shows, subcommand.calls + subcommand.helps * (counted == "helps")
