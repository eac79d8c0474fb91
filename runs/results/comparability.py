"""Find which parts of each scenario changed between two runs, so that their outcomes can't be compared.

Counts gates, rubrics and judges that a person adopted for a run in place of those of its suite's version. Imported
results say by hashes what they were measured on; the version of their suite that was made from them may hold no
task and no gates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db.models import prefetch_related_objects

from evaluators.grading.evaluate import Criteria
from evaluators.grading.scores.composite_evaluator import without_models
from evaluators.statistics.comparability import Reasons, Standard, not_comparable, outcome_reasons
from runs.models import ReassessedTrial, Reassessment, Run, Trial
from runs.models.run_options import DEFAULT_SECONDS
from runs.models.trial import TrialState
from runs.results.counting import CommandReaders, read_command_readers, with_countings
from scenarios.differences import PARTS, make_standard
from scenarios.models import SuiteEntry, SuiteVersion
from scenarios.storing import content_hash

ADOPTED = "adopted"
"""In a run's fingerprint: for each scenario its key and name, and the hashes that count."""
Key = TypeVar("Key", int, str)


def adopted_parts(fingerprint: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the adopted hashes by the scenario's key, with its `pk`; empty for a run as it was recorded."""
    return {each["key"]: each["parts"] for each in fingerprint.get(ADOPTED) or ()}


def parts_by_pk(rows: Iterable[Mapping[str, Any]] | None) -> dict[int, dict[str, str]]:
    """Return the adopted hashes by the scenario's primary key, from the value in the fingerprint."""
    return {each["pk"]: each["parts"] for each in rows or ()}


def with_adopted(
    standards: Mapping[Key, Standard], adopted: Mapping[Key, Mapping[str, str]]
) -> dict[Key, Standard]:
    """Return a run's standards with the adopted parts."""
    return {key: each._replace(**adopted.get(key, {})) for key, each in standards.items()}


def record_adopted(run: Run, reassessment: Reassessment, rows: Iterable[ReassessedTrial]) -> None:
    """Write in the run's fingerprint by which gates, rubric and judge its scores were made.

    If only some trials of a scenario have new scores, it isn't compared with other runs.
    """
    known = {each["pk"]: dict(each) for each in run.fingerprint.get(ADOPTED) or ()}
    done: dict[int, list[ReassessedTrial]] = {}
    for row in rows:
        done.setdefault(row.trial.scenario_id, []).append(row)
    scored = Trial.objects.filter(run=run, state=TrialState.FINISHED, outcome__in=("pass", "fail"))
    others = set(
        scored.exclude(
            pk__in=[row.trial_id for scenario_rows in done.values() for row in scenario_rows]
        ).values_list("scenario", flat=True)
    )
    keys = dict(scored.values_list("scenario", "scenario__key"))
    for scenario, scenario_rows in done.items():
        parts = _parts(reassessment, scenario_rows)
        if scenario in others:
            parts = dict.fromkeys(parts, f"partly, run {run.pk}")
        before = known.get(scenario, {}).get("parts", {})
        known[scenario] = {"pk": scenario, "key": keys.get(scenario, ""), "parts": {**before, **parts}}
    run.fingerprint = {**run.fingerprint, ADOPTED: list(known.values()), **_readable_parts(reassessment)}
    run.save(update_fields=["fingerprint"])


def _parts(reassessment: Reassessment, rows: list[ReassessedTrial]) -> dict[str, str]:
    if reassessment.kind == Reassessment.Kind.GRADE:
        hashes = {row.graded_by.gates_hash if row.graded_by else "" for row in rows}
        return (
            {"gates": hashes.pop()} if len(hashes) == 1 else {"gates": f"several, run {reassessment.run_id}"}
        )
    parts = (
        {"judge_model": f"{reassessment.judge_model} {reassessment.judge_sha256}"}
        if reassessment.judge_model
        else {}
    )
    return {**parts, **({"rubric": reassessment.rubric_hash} if reassessment.rubric else {})}


def _readable_parts(reassessment: Reassessment) -> dict[str, str]:
    """Return the readable parts of the fingerprint, for causes and differences."""
    if reassessment.kind == Reassessment.Kind.GRADE:
        return {"gates": f"graded again, {reassessment.pk}"}
    judge = (
        {"judge": reassessment.judge_model, "judge_sha256": reassessment.judge_sha256}
        if reassessment.judge_model
        else {}
    )
    return {**judge, **({"rubric": reassessment.rubric_hash} if reassessment.rubric else {})}


CONTENTS = "contents"
"""The key in the fingerprint of imported runs."""
SHORTEST_HASH = 12
_OF_CONTENT = frozenset(("task", "gates", "judge", "rubric", "pattern", "threshold", "time_limit"))
"""Parts that can't have changed if the contents are equal, or that results files don't contain."""
CHANGED: Reasons = ("task", "gates")
"""What may have changed where the contents differ."""


def contents_json(suite_hash: str, scenarios: Iterable[tuple[str, str]], *, by_id: bool) -> dict[str, Any]:
    """Return what the fingerprint of imported results keeps.

    `scenarios` are keys and hashes, empty if unknown. With `by_id`, somebody chose the results as a baseline: scenarios
    without a hash are compared by their ids, as tool-forge's contract has it.
    """
    hashes = {key: sha256 for key, sha256 in scenarios if sha256}
    return {"suite": suite_hash, "scenarios": hashes, "by_id": by_id}


def is_version(suite_hash: str, version: SuiteVersion) -> bool:
    """Return whether a hash in results names this version of a suite."""
    if len(suite_hash) < SHORTEST_HASH:
        return False
    return version.sha256.startswith(suite_hash) or version.config.get("eval_file_hash") == suite_hash


def with_imported_contents(
    before: Run, others: Sequence[Run], reasons: Sequence[dict[str, Reasons]]
) -> list[dict[str, Reasons]]:
    """Return the reasons of each later run with what imported results say of their contents.

    No query without imported runs, else one, and two more where runs that were executed are compared with them.
    """
    asked = [run for run in others if before.fingerprint.get(CONTENTS) or run.fingerprint.get(CONTENTS)]
    if not asked:
        return list(reasons)
    keys = _read_keys([before, *asked])
    executed = [run for run in (before, *asked) if not run.fingerprint.get(CONTENTS)]
    prefetch_related_objects(executed, "suite_version")
    hashes = _read_hashes({run.suite_version_id for run in executed})
    return [
        _with_contents((before, run), why, keys[before.pk] & keys[run.pk], hashes) if run.pk in keys else why
        for run, why in zip(others, reasons, strict=True)
    ]


def _with_contents(
    pair: tuple[Run, Run],
    reasons: dict[str, Reasons],
    keys: Collection[str],
    hashes: Mapping[int, dict[str, str]],
) -> dict[str, Reasons]:
    known = [run.fingerprint.get(CONTENTS) for run in pair]
    same_suite = _is_of(known[0], known[1], pair[1]) or _is_of(known[1], known[0], pair[0])
    old, new = (
        own["scenarios"] if own else hashes[run.suite_version_id]
        for run, own in zip(pair, known, strict=True)
    )
    by_id = any(own and own["by_id"] for own in known)
    remaining = dict(reasons)
    for key in keys:
        first, second = old.get(key), new.get(key)
        if same_suite or (first and first == second) or (by_id and not (first and second)):
            left = tuple(part for part in remaining.pop(key, ()) if part not in _OF_CONTENT)
            remaining |= {key: left} if left else {}
        elif first and second:
            remaining.setdefault(key, CHANGED)
    return remaining


def _is_of(known: Mapping[str, Any] | None, others: Mapping[str, Any] | None, other: Run) -> bool:
    """Return whether results name the content of another run's suite."""
    if known is None:
        return False
    suite_hash = str(known["suite"])
    if others is not None:
        return len(suite_hash) >= SHORTEST_HASH and suite_hash == others["suite"]
    return is_version(suite_hash, other.suite_version)


def _read_hashes(versions: Collection[int]) -> dict[int, dict[str, str]]:
    """Return the hashes of each suite version's scenarios by key."""
    hashes: dict[int, dict[str, str]] = {version: {} for version in versions}
    entries = SuiteEntry.objects.filter(suite_version__in=versions).values_list(
        "suite_version_id", "scenario_version__scenario__key", "scenario_version__sha256"
    )
    for version, key, sha256 in entries:
        hashes[version][key] = sha256
    return hashes


def _read_keys(runs: Sequence[Run]) -> dict[int, set[str]]:
    """Return the scenarios that each run has trials of."""
    keys: dict[int, set[str]] = {run.pk: set() for run in runs}
    trials = Trial.objects.filter(run__in=keys).order_by()
    for run, key in trials.values_list("run_id", "scenario__key").distinct():
        keys[run].add(key)
    return keys


class Aggregate(NamedTuple):
    """How a scenario's evaluators decide."""

    asks_model: bool
    """Whether one of them asks a model, which a run may leave out."""
    threshold: float
    """The scenario's own threshold."""


def aggregates_of(versions: Iterable[int]) -> dict[int, dict[str, Aggregate]]:
    """Return the scenarios with evaluators by suite version and key. One query."""
    aggregates: dict[int, dict[str, Aggregate]] = {version: {} for version in versions}
    entries = SuiteEntry.objects.filter(
        suite_version__in=aggregates, scenario_version__content__criteria__evaluators__0__isnull=False
    )
    columns = ("scenario_version__scenario__key", "scenario_version__content__criteria")
    for version, key, content in entries.values_list("suite_version_id", *columns):
        criteria = Criteria.model_validate(content)
        asks_model = without_models(criteria.evaluators) != criteria.evaluators
        aggregates[version][key] = Aggregate(asks_model, criteria.threshold)
    return aggregates


UNJUDGED = "none"
"""In place of a judge, where the run was requested without judges."""


class ScoreSources(NamedTuple):
    """Where a run's scores and costs come from; empty texts if unknown."""

    judge: str = ""
    """The target that judged, with its definition's hash, or `UNJUDGED`."""
    prices: str = ""
    pattern: str = ""
    """What finds the tool's commands in scenarios without a pattern of their own."""
    threshold: float | None = None
    """The aggregate score that the run requested in place of the scenarios' own."""
    seconds: float = DEFAULT_SECONDS
    """The agent's time limit in scenarios without one of their own."""


class Configuration(NamedTuple):
    """What a run's results depend on but for its target, guidance and tool."""

    suite_version: int
    sources: ScoreSources
    adopted: Any = None
    """What a person adopted, as in the run's fingerprint."""
    counting: Any = None
    """How its commands are counted, as in `Run.counting`."""


class SuiteStandards(NamedTuple):
    """What is known of the scenarios of suite versions, by version and key."""

    standards: Mapping[int, Mapping[str, Standard]] = {}
    aggregates: Mapping[int, Mapping[str, Aggregate]] = {}
    """How their evaluators decide; read where judges or thresholds differ."""
    untimed: Mapping[int, frozenset[str]] = {}
    """Scenarios without a time limit of their own; read where requested limits differ."""
    readers: Mapping[int, CommandReaders] = {}
    """What reads their commands; read where these are counted differently."""


def read_standards(pairs: Iterable[tuple[Configuration, Configuration]]) -> SuiteStandards:
    """Return what `changed_between` needs. At most one query, more where judges, thresholds or time limits differ."""
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    versions = {configuration.suite_version for pair in differing for configuration in pair}
    if not versions:
        return SuiteStandards()
    return SuiteStandards(
        standards_of(versions),
        aggregates_of(versions) if any(map(_decide_differently, differing)) else {},
        _find_untimed(versions) if any(map(_limit_differently, differing)) else {},
        read_command_readers(versions) if any(map(_count_differently, differing)) else {},
    )


def changed_between(known: SuiteStandards, pair: tuple[Configuration, Configuration]) -> dict[str, Reasons]:
    """Return what changed in each common scenario, by key; unchanged ones are left out."""
    before, after = pair
    if before == after:
        return {}
    old, new = (_with(known.standards[run.suite_version], run) for run in pair)
    if _decide_differently(pair):
        old, new = (
            _add_scoring(side_standards, known.aggregates[run.suite_version], run.sources)
            for side_standards, run in zip((old, new), pair, strict=True)
        )
    if _limit_differently(pair):
        old, new = (
            _add_time_limits(side_standards, known.untimed[run.suite_version], run.sources)
            for side_standards, run in zip((old, new), pair, strict=True)
        )
    if _count_differently(pair):
        old, new = with_countings(
            (old, new),
            (before.counting, after.counting),
            (known.readers.get(before.suite_version), known.readers.get(after.suite_version)),
        )
    return not_comparable(old, new)


def changed_parts(before: Run, after: Run, *, prices: bool = True) -> dict[str, Reasons]:
    """Return what changed in each scenario of both runs, by key; unchanged ones are left out.

    `prices` says whether where costs come from counts. One query, none where both ran the same version of the suite
    with the same judge and prices.
    """
    return parts_changed_since(before, [after], prices=prices)[0]


def parts_changed_since(
    before: Run, others: Sequence[Run], *, prices: bool = True
) -> list[dict[str, Reasons]]:
    """Return `changed_parts` of each later run.

    At most one query, more where judges, thresholds, time limits or the counting of commands differ, and up to two
    where runs were imported.
    """
    pairs = [_configurations(before, each, prices=prices) for each in others]
    known = read_standards(pairs)
    by_pair: dict[str, dict[str, Reasons]] = {}
    changed = []
    for pair in pairs:
        alike = repr(pair)
        if alike not in by_pair:
            by_pair[alike] = changed_between(known, pair)
        changed.append(by_pair[alike])
    return with_imported_contents(before, others, changed)


def outcomes_changed_since(before: Run, others: Sequence[Run]) -> list[dict[str, Reasons]]:
    """Return the scenarios of each later run whose outcomes can't be compared, with the changed parts that decide them.

    At most three queries.
    """
    return [outcome_reasons(each) for each in parts_changed_since(before, others, prices=False)]


def gates_changed_since(
    before: Run, others: Sequence[tuple[Run, Collection[str]]]
) -> list[dict[str, frozenset[str]]]:
    """Return the types of gates that changed in these scenarios of each later run. One query, none without scenarios."""
    keys = {key for _, scenarios in others for key in scenarios}
    if not keys:
        return [{} for _ in others]
    gates = _gates({before.suite_version_id, *(run.suite_version_id for run, _ in others)}, keys)
    old = gates[before.suite_version_id]
    return [
        {key: _differing(old.get(key, {}), gates[run.suite_version_id].get(key, {})) for key in scenarios}
        for run, scenarios in others
    ]


def _configurations(before: Run, after: Run, *, prices: bool) -> tuple[Configuration, Configuration]:
    judges = both_known(find_judge(before), find_judge(after))
    paid = both_known(before.price_source, after.price_source) if prices else ("", "")
    first, second = (
        Configuration(
            run.suite_version_id,
            ScoreSources(
                judge=judge,
                prices=source,
                pattern=str(run.fingerprint.get("command_pattern", "")),
                threshold=run.options.get("threshold"),
                seconds=run.options.get("timeout_seconds") or DEFAULT_SECONDS,
            ),
            run.fingerprint.get(ADOPTED),
            run.counting,
        )
        for run, judge, source in zip((before, after), judges, paid, strict=True)
    )
    return first, second


def both_known(before: str, after: str) -> tuple[str, str]:
    """Return both, or two empty texts if one is unknown: runs of older releases don't know their judge and prices."""
    return (before, after) if before and after else ("", "")


def find_judge(run: Run) -> str:
    """Return what judged a run, as `judge_named` does."""
    values = (run.fingerprint.get(name) for name in ("judge", "judge_sha256"))
    return judge_named(run.options.get("judge"), *values)


def judge_named(judged: bool | None, name: str | None, sha256: str | None) -> str:
    """Return the target that judged a run with its definition's hash, `UNJUDGED`, or nothing if unknown.

    `judged` is whether the run was requested with judges.
    """
    if judged is False:
        return UNJUDGED
    return f"{name} {sha256}" if sha256 else ""


def standards_of(versions: Iterable[int]) -> dict[int, dict[str, Standard]]:
    """Return the standards of each suite version's scenarios by key, without a judging target. One query."""
    return _read(versions, "key")


def scenario_standards(versions: Iterable[int]) -> dict[int, dict[int, Standard]]:
    """Return them by the scenario's primary key."""
    return _read(versions, "pk")


def _read(versions: Iterable[int], name: str) -> dict[int, dict[Any, Standard]]:
    columns = (f"scenario_version__{each}" for each in (f"scenario__{name}", *PARTS))
    standards: dict[int, dict[Any, Standard]] = {version: {} for version in versions}
    entries = SuiteEntry.objects.filter(suite_version__in=standards).order_by("position")
    for version, scenario, *hashes in entries.values_list("suite_version_id", *columns):
        standards[version][scenario] = make_standard(hashes)
    return standards


def standard_with_judge(scenario_standard: Standard, judge: str) -> Standard:
    """Return a scenario's standard with the target that judged it, if anything is judged."""
    return (
        scenario_standard._replace(judge_model=judge)
        if scenario_standard.judge or scenario_standard.rubric
        else scenario_standard
    )


def _with(standards: Mapping[str, Standard], run: Configuration) -> dict[str, Standard]:
    sources = run.sources
    with_judge = {
        key: standard_with_judge(scenario_standard, sources.judge)._replace(
            prices=sources.prices, pattern=scenario_standard.pattern or sources.pattern
        )
        for key, scenario_standard in standards.items()
    }
    return with_adopted(with_judge, adopted_parts({ADOPTED: run.adopted}))


def _decide_differently(pair: tuple[Configuration, Configuration]) -> bool:
    """Return whether the same evaluators could decide differently in two runs."""
    one, other = (each.sources for each in pair)
    return (one.judge, one.threshold) != (other.judge, other.threshold)


def _add_scoring(
    standards: dict[str, Standard], aggregates: Mapping[str, Aggregate], sources: ScoreSources
) -> dict[str, Standard]:
    """Return a run's standards with the judge and the threshold of scenarios with evaluators."""
    changed = dict(standards)
    for key, aggregate in aggregates.items():
        scenario_standard = changed[key]
        threshold = aggregate.threshold if sources.threshold is None else sources.threshold
        judge = scenario_standard.judge_model or (sources.judge if aggregate.asks_model else "")
        changed[key] = scenario_standard._replace(threshold=f"{threshold:g}", judge_model=judge)
    return changed


def _count_differently(pair: tuple[Configuration, Configuration]) -> bool:
    return bool((pair[0].counting or None) != (pair[1].counting or None))


def _limit_differently(pair: tuple[Configuration, Configuration]) -> bool:
    return pair[0].sources.seconds != pair[1].sources.seconds


def _find_untimed(versions: Iterable[int]) -> dict[int, frozenset[str]]:
    """Return the scenarios of each suite version without a time limit of their own. One query."""
    untimed: dict[int, set[str]] = {version: set() for version in versions}
    entries = SuiteEntry.objects.filter(suite_version__in=untimed)
    columns = ("scenario_version__scenario__key", "scenario_version__content__limits__timeout_seconds")
    for version, key, seconds in entries.values_list("suite_version_id", *columns):
        if not seconds:
            untimed[version].add(key)
    return {version: frozenset(keys) for version, keys in untimed.items()}


def _add_time_limits(
    standards: dict[str, Standard], untimed: frozenset[str], sources: ScoreSources
) -> dict[str, Standard]:
    """Return a run's standards with the time limit of scenarios that leave it to runs."""
    return {
        key: scenario_standard._replace(time_limit=f"{sources.seconds:g}")
        if key in untimed
        else scenario_standard
        for key, scenario_standard in standards.items()
    }


def _gates(versions: Collection[int], keys: Collection[str]) -> dict[int, dict[str, dict[str, str]]]:
    """Return the hash of each scenario's gates of each type, by suite version."""
    entries = SuiteEntry.objects.filter(suite_version__in=versions, scenario_version__scenario__key__in=keys)
    columns = ("scenario_version__scenario__key", "scenario_version__content__criteria__gates")
    by_version: dict[int, dict[str, dict[str, str]]] = {version: {} for version in versions}
    for version, key, gates in entries.values_list("suite_version_id", *columns):
        by_version[version][key] = _by_type(gates or [])
    return by_version


def _by_type(gates: list[dict[str, Any]]) -> dict[str, str]:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for gate in gates:
        by_type.setdefault(str(gate.get("type")), []).append(gate)
    return {name: content_hash(same) for name, same in by_type.items()}


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
