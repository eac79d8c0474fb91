"""Merge the shards of a matrix of jobs (`run_scenarios --shard 1/3`) into the run that one job would have made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from runs.errors import RequestError
from runs.exchange.results_files.archived_runs import Archived, ArchivedRun, ArchivedTrial

_SUMS = ("trials", "passed", "failed", "errors", "cancelled", "tokens_in", "tokens_out")
_SHARD = re.compile(r"([1-9]\d{0,3})/([1-9]\d{0,3})")


def shard_of(text: str) -> tuple[int, int]:
    """Return a shard's number and how many there are. Raises `ValueError` for anything but N/M with 1 ≤ N ≤ M."""
    match = _SHARD.fullmatch(text)
    number, of = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= of:
        raise ValueError(f"{text} is not a shard. Give its number and how many there are, such as 1/3.")
    return number, of


def merge_shards(runs: Sequence[Archived]) -> list[Archived]:
    """Return the runs with those that are shards of one suite on one target and configuration merged.

    Raises `RequestError` unless each set of shards is whole.
    """
    groups: dict[tuple[Any, ...], list[Archived]] = {}
    for archived in runs:
        groups.setdefault(_line(archived.run), []).append(archived)
    merged = []
    for group in groups.values():
        shards = [each for each in group if each.run.shard]
        merged += [each for each in group if not each.run.shard]
        merged += [_merge(shards)] if shards else []
    return merged


def _line(run: ArchivedRun) -> tuple[Any, ...]:
    guidance = run.guidance.sha256 if run.guidance else ""
    columns = (run.columns.get(name) for name in ("model", "commit", "branch", "tool_version"))
    parts = run.shard.partition("/")[2]
    return (run.suite.slug, run.suite.sha256, run.target, guidance, parts, *columns)


def _merge(shards: Sequence[Archived]) -> Archived:
    by_uuid = {each.run.uuid: each for each in shards}
    ordered = sorted(by_uuid.values(), key=lambda each: shard_of(each.run.shard))
    _check(ordered)
    first = ordered[0].run
    runs = [each.run for each in ordered]
    columns = {**first.columns, **_totals([each.columns for each in runs])}
    columns["options"] = {**first.columns.get("options", {}), "shard": ""}
    names = "/".join(sorted(each.uuid for each in runs))
    run = replace(
        first,
        # The same shards are the same run, in whatever order and however often they are merged.
        uuid=str(uuid5(NAMESPACE_URL, f"evalhub:shards:{names}")),
        columns=columns,
        trials=sum(each.trials for each in runs),
    )
    return Archived(run, _in_turn(ordered))


def _check(ordered: Sequence[Archived]) -> None:
    numbers = [shard_of(each.run.shard)[0] for each in ordered]
    of = shard_of(ordered[0].run.shard)[1]
    where = f"{ordered[0].run.suite.name} on {ordered[0].run.target}"
    if missing := [str(number) for number in range(1, of + 1) if number not in numbers]:
        raise RequestError(
            f"Shard {', '.join(missing)} of {of} of {where} is missing. Merge the archives of all shards at once."
        )
    if len(numbers) != of:
        raise RequestError(f"{where} has more than one run of a shard. Merge one archive of each shard.")


def _totals(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns of the whole run."""
    sums = {name: sum(row.get(name) or 0 for row in columns) for name in _SUMS}
    costs = [row["cost_usd"] for row in columns if row.get("cost_usd") is not None]
    outcomes = [row.get("outcome") for row in columns]
    states = {row.get("state") for row in columns}
    passed = "" if "" in outcomes else "pass"
    return {
        **sums,
        "cost_usd": sum(costs) if costs else None,
        "state": "cancelled" if "cancelled" in states else "finished",
        "outcome": next((word for word in ("fail", "error") if word in outcomes), passed),
        "error": " ".join(dict.fromkeys(filter(None, (row.get("error") for row in columns)))),
        "warnings": list(dict.fromkeys(text for row in columns for text in row.get("warnings", []))),
        "created": min(row["created"] for row in columns),
        "started": min(_known_times(row.get("started") for row in columns), default=None),
        "finished": max(_known_times(row.get("finished") for row in columns), default=None),
    }


def _known_times(moments: Iterable[str | None]) -> list[str]:
    return [each for each in moments if each]


def _in_turn(shards: Sequence[Archived]) -> tuple[ArchivedTrial, ...]:
    """Return the trials of all shards: all scenarios once, then all again."""
    trials = [trial for shard in shards for trial in shard.trials]
    ordered = sorted(trials, key=lambda trial: (trial.columns["index"], trial.columns["position"]))
    return tuple(
        replace(trial, columns={**trial.columns, "position": position})
        for position, trial in enumerate(ordered)
    )
