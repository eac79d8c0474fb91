"""The choices of a new run that people make by name: scenarios, their tags, models, tags of runs, guidance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from evalhub.lib.numbers import counted
from runs.launch.new_run_page.run_choices import RunChoices
from runs.launch.selection import ChosenScenario
from runs.models import Run
from runs.models.run import RunState
from scenarios.models import Suite

RECENT = 100
"""Newest runs of the project whose models and tags are offered."""
SHOWN_CARDS = 6
"""Guidance versions in sight; older ones are folded away."""


@dataclass(frozen=True)
class NamedChoice:
    """A name to choose, with words beside it."""

    name: str
    note: str = ""


@dataclass(frozen=True)
class GuidanceCard:
    """A version of a suite's guidance to choose."""

    value: str
    """Its key; empty for that of the latest upload, whichever it is."""
    name: str
    created: datetime | None = None
    run: Run | None = None
    """Its newest finished run, with a rate."""


@dataclass(frozen=True)
class RecentlyUsed:
    """What the newest runs of a project used."""

    models: Sequence[str] = ()
    tags: Sequence[str] = ()
    by_guidance: Mapping[int, Run] = field(default_factory=dict)
    """The newest finished run of each version of guidance."""


def read_recently_used(project: int) -> RecentlyUsed:
    """Return what a project's newest runs used. One query."""
    columns = ("pk", "model", "tags", "guidance", "state", "passed", "failed", "pass_rate")
    runs = list(Run.objects.filter(project=project).only(*columns).order_by("-pk")[:RECENT])
    tags = Counter(tag for run in runs for tag in run.tags)
    done = [run for run in runs if run.state == RunState.FINISHED and run.passed + run.failed]
    return RecentlyUsed(
        sorted({run.model for run in runs if run.model}),
        [tag for tag, _ in tags.most_common()],
        {run.guidance_id: run for run in reversed(done) if run.guidance_id},
    )


def scenario_choices(scenarios: Sequence[ChosenScenario], failed: Collection[int]) -> list[NamedChoice]:
    """Return a suite's scenarios in order, with their tags and whether they failed in their last run."""
    return [
        NamedChoice(
            scenario.key,
            ", ".join([*(["failed last time"] if scenario.scenario_id in failed else []), *scenario.tags]),
        )
        for scenario in scenarios
    ]


def tag_choices(scenarios: Iterable[ChosenScenario]) -> list[NamedChoice]:
    """Return the scenarios' tags, the most frequent first, with their numbers of scenarios."""
    counts = Counter(tag for scenario in scenarios for tag in set(scenario.tags))
    # A request lists tags with commas between them.
    listable = [(tag, n) for tag, n in counts.items() if "," not in tag and tag == tag.strip()]
    return [NamedChoice(tag, str(n)) for tag, n in sorted(listable, key=lambda item: (-item[1], item[0]))]


def tier_choices(scenarios: Iterable[ChosenScenario], chosen: str) -> list[tuple[str, str]]:
    """Return the tiers to stop at; none for scenarios of one tier, unless one is chosen."""
    tiers = [each.tier for each in scenarios]
    numbers = sorted({*tiers})[:-1]
    offered = [
        (str(tier), f"{tier}: {counted(sum(each <= tier for each in tiers), 'scenario')}") for tier in numbers
    ]
    if chosen and chosen not in dict(offered):
        offered.append((chosen, chosen))
    return [("", "all"), *offered] if offered else []


def guidance_cards(offer: RunChoices, suite: Suite, recent: RecentlyUsed) -> list[GuidanceCard]:
    """Return the latest upload's guidance and the suite's other versions, newest first; none without a version."""
    versions = offer.guidance_of(suite)
    if not versions:
        return []
    latest = offer.defaults.get(suite.pk)
    run = recent.by_guidance.get(latest.pk) if latest else None
    cards = [
        GuidanceCard("", f"Latest upload: {latest or 'no guidance'}", latest.created if latest else None, run)
    ]
    others = [version for version in versions if latest is None or version.pk != latest.pk]
    for version in others:
        cards.append(
            GuidanceCard(str(version.pk), str(version), version.created, recent.by_guidance.get(version.pk))
        )
    return cards
