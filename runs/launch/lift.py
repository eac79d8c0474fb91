"""The arms of a lift: a suite's skill, the same guidance without it, and with the skill's previous version."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User

from runs.errors import RequestError
from runs.exchange.results_files.skill_creator import BENCHMARK, mean_shares
from scenarios.adopted_guidance import last_guidance
from scenarios.formats.agent_skills import is_trigger_suite
from scenarios.guidance import Guidance as GuidanceFiles
from scenarios.guidance import skill_files, with_skills, without_skills
from scenarios.models import Guidance, Suite, SuiteVersion
from scenarios.naming import find_version
from scenarios.sources import source_of
from scenarios.storing import guidance_files, plan_guidance, store_guidance

LIFT_OPTIONS: dict[str, Any] = {"until_decided": True, "experiment": True}
"""What every lift is: all arms are experiments, because their looks would bias a baseline."""
NO_SKILL = "no skill"
"""The name of the guidance without the skill."""
NO_PREVIOUS = "none"
"""The choice of a lift without a third arm."""


def drop_triggers(versions: Sequence[SuiteVersion]) -> list[SuiteVersion]:
    """Return the suite versions without those of trigger queries, which can't pass without a skill."""
    return [each for each in versions if not is_trigger_suite(each.suite.format, each.suite.slug)]


def has_skill(suite: Suite, guidance: Guidance | None) -> bool:
    """Return whether a lift says what the skill in a suite's guidance adds. One query if its files aren't loaded."""
    files = guidance_files(guidance)
    return without_skills(files) != files and not is_trigger_suite(suite.format, suite.slug)


def lift_arms(
    versions: Sequence[SuiteVersion], chosen: Sequence[Guidance], previous: str | GuidanceFiles = ""
) -> list[Guidance]:
    """Return for each suite its guidance without the skill, with it, and where there is one with its previous version.

    The skill is that of the `chosen` version, else of the last upload. `previous` is a version's number, name or start
    of its hash, `none`, or a skill's files; empty means the last stored version with another skill. Arms may not be
    stored yet. Raises `RequestError` for several chosen ones, without a skill, and for an unknown previous version.
    """
    if not versions:
        raise RequestError("Trigger queries have no lift. Name the suite of the skill's cases.")
    all_arms: list[Guidance] = []
    for version in versions:
        suite = version.suite
        chosen_skills = [each for each in chosen if each.suite_id == suite.pk]
        if len(chosen_skills) > 1:
            raise RequestError("A lift compares one version of a skill with none. Choose one version.")
        skill = chosen_skills[0] if chosen_skills else last_guidance(suite)
        files = guidance_files(skill)
        rest = without_skills(files)
        if skill is None or rest == files:
            raise RequestError(
                f"{suite.name} has no skill, so there is no lift. Upload a folder with SKILL.md and evals/, or compare"
                " versions of its guidance."
            )
        arms = [plan_guidance(suite, rest, name=NO_SKILL), skill]
        if old := _previous_files(suite, skill, previous):
            arms.append(plan_guidance(suite, with_skills(rest, old)))
            # The arm without the skill is stored first.
            arms[-1].number += arms[0].pk is None and arms[-1].pk is None
        all_arms += arms
    return all_arms


def keep_arms(arms: Sequence[Guidance], *, by: User | None) -> list[Guidance]:
    """Return the arms of a lift, stored."""
    return [
        arm if arm.pk else store_guidance(arm.suite, guidance_files(arm), by=by, name_if_new=arm.name)[0]
        for arm in arms
    ]


def lift_benchmark(suite: Suite, beside: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return what skill-creator's benchmark.json says of a suite's skill: that in its folder, else one `beside` it.

    It is the mean share of statements by configuration, empty without a file. Two queries.
    """
    source = source_of(suite)
    files = {path: file.content for path, file in source.files.items()} if source else {}
    folders = {posixpath.dirname(path) for path in files if posixpath.basename(path) == "SKILL.md"}
    benchmarks = {
        path: files[path] for path in files if path in {posixpath.join(each, BENCHMARK) for each in folders}
    }
    return mean_shares(benchmarks) or dict(beside.get(suite.slug, {}))


def _previous_files(suite: Suite, skill: Guidance, previous: str | GuidanceFiles) -> GuidanceFiles:
    """Return the files of a skill's previous version, none without one. Raises `RequestError`."""
    current = skill_files(guidance_files(skill))
    if previous == NO_PREVIOUS:
        return ()
    if not previous:
        return next(_older_skills(suite, skill, current), ())
    files = previous if isinstance(previous, tuple) else _named_skill(suite, previous)
    if files == current:
        raise RequestError(
            f"The previous version is the one that is measured. Choose another one, or {NO_PREVIOUS}."
        )
    return files


def _named_skill(suite: Suite, name: str) -> GuidanceFiles:
    version = find_version(suite, name)
    if version is None:
        numbers = ", ".join(str(each.number) for each in suite.guidance.all()) or "none"
        raise RequestError(f"'{name}' isn't a guidance version of {suite.name}. It has: {numbers}.")
    files = skill_files(guidance_files(version))
    if not files:
        raise RequestError(
            f"{version} of {suite.name} has no skill. Choose a version with one, or {NO_PREVIOUS}."
        )
    return files


def _older_skills(suite: Suite, skill: Guidance, current: GuidanceFiles) -> Iterator[GuidanceFiles]:
    """Yield the other skills of a suite: the last uploaded first; of a version that isn't the last upload, older ones."""
    versions = list(suite.guidance.exclude(pk=skill.pk))
    uploaded = list(dict.fromkeys(suite.uploads.values_list("guidance", flat=True)))
    if skill.pk is not None and uploaded[:1] == [skill.pk]:
        versions.sort(
            key=lambda version: uploaded.index(version.pk) if version.pk in uploaded else len(uploaded)
        )
    else:
        versions = [version for version in versions if version.number < skill.number]
    for version in versions:
        files = skill_files(guidance_files(version))
        if files and files != current:
            yield files
