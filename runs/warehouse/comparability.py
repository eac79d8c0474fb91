"""Find which parts of each scenario changed between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evaluators.comparability import Reasons, Standard, not_comparable
from runs.models import Run
from scenarios.differences import PARTS, standard
from scenarios.hashing import content_hash
from scenarios.models import SuiteEntry


def changed_parts(before: Run, after: Run, *, prices: bool = True) -> dict[str, Reasons]:
    """Return the scenarios of both runs in which something changed, by key, with what did.

    `prices` says whether where costs come from counts. Two queries, none where both ran the same version of the suite
    with the same judge and prices.
    """
    judges = _judge(before), _judge(after)
    # Runs of older releases don't know their judge, nor their prices.
    known = judges if all(judges) else ("", "")
    sources = (before.price_source, after.price_source) if prices else ("", "")
    paid = sources if all(sources) else ("", "")
    if before.suite_version_id == after.suite_version_id and known[0] == known[1] and paid[0] == paid[1]:
        return {}
    return not_comparable(_standards(before, known[0], paid[0]), _standards(after, known[1], paid[1]))


def changed_gates(before: Run, after: Run, keys: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the types of gates that changed in each of these scenarios. Two queries, none without scenarios."""
    keys = list(keys)
    if not keys:
        return {}
    old, new = _gates(before, keys), _gates(after, keys)
    return {key: _differing(old.get(key, {}), new.get(key, {})) for key in keys}


def _judge(run: Run) -> str:
    """Return the target that judged the run with its definition's hash; empty if unknown."""
    sha256 = run.fingerprint.get("judge_sha256")
    return f"{run.fingerprint.get('judge')} {sha256}" if sha256 else ""


def standards_of(versions: Iterable[int]) -> dict[int, dict[str, Standard]]:
    """Return the standards of each suite version's scenarios by key, without a judging target. One query."""
    return _read(versions, "key")


def scenario_standards(versions: Iterable[int]) -> dict[int, dict[int, Standard]]:
    """Return them by the scenario's primary key."""
    return _read(versions, "pk")


def _read(versions: Iterable[int], name: str) -> dict[int, dict[Any, Standard]]:
    columns = (f"scenario_version__{each}" for each in (f"scenario__{name}", *PARTS))
    found: dict[int, dict[Any, Standard]] = {version: {} for version in versions}
    entries = SuiteEntry.objects.filter(suite_version__in=found).order_by("position")
    for version, scenario, *hashes in entries.values_list("suite_version_id", *columns):
        found[version][scenario] = standard(hashes)
    return found


def with_judge(own: Standard, judge: str) -> Standard:
    """Return a scenario's standard with the target that judged it, if anything is judged."""
    return own._replace(judge_model=judge) if own.judge or own.rubric else own


def _standards(run: Run, judge: str, prices: str) -> dict[str, Standard]:
    own = standards_of([run.suite_version_id])[run.suite_version_id]
    return {key: with_judge(each, judge)._replace(prices=prices) for key, each in own.items()}


def _gates(run: Run, keys: list[str]) -> dict[str, dict[str, str]]:
    """Return the hash of each scenario's gates of each type."""
    entries = SuiteEntry.objects.filter(
        suite_version=run.suite_version_id, scenario_version__scenario__key__in=keys
    )
    columns = ("scenario_version__scenario__key", "scenario_version__content__criteria__gates")
    return {key: _by_type(gates or []) for key, gates in entries.values_list(*columns)}


def _by_type(gates: list[dict[str, Any]]) -> dict[str, str]:
    by_type: dict[str, list[dict[str, Any]]] = {}
    for gate in gates:
        by_type.setdefault(str(gate.get("type")), []).append(gate)
    return {name: content_hash(same) for name, same in by_type.items()}


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
