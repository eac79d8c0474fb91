"""Build links that narrow a new run to some scenarios and keep the other choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from urllib.parse import urlencode

from django.http import QueryDict

from evalhub.web.chips import Chip
from runs.launch.selection import ChosenScenario

MOST_TAGS = 8
KEPT = ("suite", "guidance", "models", "trials", "concurrency", "run_tags")
"""Fields that links keep besides the targets and the judge."""
UNTICKED = "false"
"""Value of an unticked box in links; forms omit it."""
FAILED_LAST = "failed"
"""Query parameter that selects the scenarios that failed in the last run."""


def failed_keys(scenarios: Sequence[ChosenScenario], failed: Collection[int]) -> str:
    """Return the failed scenarios' keys for the form's field; empty if a key can't be listed."""
    keys = [each.key for each in scenarios if each.scenario_id in failed]
    return "" if any("," in key or key != key.strip() for key in keys) else ", ".join(keys)


def chips(scenarios: Sequence[ChosenScenario], failed: Collection[int], given: QueryDict) -> list[Chip]:
    """Return the chips of a suite's scenarios; an active one links back."""
    return [*_tags(scenarios, given), *_tiers(scenarios, given), *_failed_chips(scenarios, failed, given)]


def _tags(scenarios: Sequence[ChosenScenario], given: QueryDict) -> Iterator[Chip]:
    counts = Counter(tag for each in scenarios for tag in set(each.tags))
    chosen = given.get("tags", "").strip()
    # The field is comma-separated, so tags with commas are left out.
    listable = [(tag, n) for tag, n in counts.items() if "," not in tag and tag == tag.strip()]
    for tag, n in sorted(listable, key=lambda item: (-item[1], item[0]))[:MOST_TAGS]:
        is_on = chosen == tag
        yield Chip(tag, n, _query(given, tags="" if is_on else tag, tier=given.get("tier", "")), is_on)


def _tiers(scenarios: Sequence[ChosenScenario], given: QueryDict) -> Iterator[Chip]:
    tiers = sorted({each.tier for each in scenarios})
    chosen = given.get("tier", "").strip()
    # The last tier includes everything.
    for tier in tiers[:-1]:
        n, is_on = sum(each.tier <= tier for each in scenarios), chosen == str(tier)
        query = _query(given, tier="" if is_on else str(tier), tags=given.get("tags", ""))
        yield Chip(f"up to tier {tier}", n, query, is_on)


def _failed_chips(
    scenarios: Sequence[ChosenScenario], failed: Collection[int], given: QueryDict
) -> Iterator[Chip]:
    keys = failed_keys(scenarios, failed)
    if keys:
        is_on = given.get("only", "").strip() == keys
        n = sum(each.scenario_id in failed for each in scenarios)
        yield Chip("failed last time", n, _query(given, **{} if is_on else {FAILED_LAST: "last"}), is_on)


def _query(given: QueryDict, **changed: str) -> str:
    """Return the query string of the form's choices without the scenarios, which chips set."""
    kept = [(name, given.get(name, "")) for name in KEPT]
    kept += [("targets", name) for name in given.getlist("targets")]
    kept += [("judge", "" if given.get("judge", UNTICKED) != UNTICKED else UNTICKED), *changed.items()]
    return urlencode([(name, value) for name, value in kept if value])
