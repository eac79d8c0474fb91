"""The arms of a launch with several versions of guidance: which is compared with which, and which decides.

A lift has a suite's skill, the same guidance without it, and with the skill's previous version.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User

from runs.errors import RequestError
from runs.exchange.results_files.skill_creator import BENCHMARK, mean_shares
from runs.models import Run
from runs.models.run import Arm
from runs.models.run_options import RunOptions
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


def link_arms(runs: Iterable[Run], *, until_decided: bool) -> None:
    """Have each later arm of a new launch compared with the first one, in the order in which they were asked for.

    Until a verdict, the first two are looked at together, and a third one, of a lift, follows them.
    """
    for old, *others in _arms(runs):
        for place, new in enumerate(others):
            if until_decided and place:
                _save(new, arm=Arm.PREVIOUS, reference=old)
            else:
                _save(new, arm=Arm.NEW, reference=old, options={**new.options, "baseline": str(old.pk)})
        if others:
            _save(old, arm=Arm.REFERENCE)


def plan_retests(runs: Iterable[Run]) -> None:
    """Have several versions of guidance run broken scenarios again in turn, or not at all.

    They do where the command fails for a regression, each later one against the first one named. Without that they
    are a comparison, in which nothing broke.
    """
    for arms in _arms(runs):
        if len(arms) < 2:
            continue
        is_test = all(RunOptions.model_validate(run.options).fail_on_regression for run in arms)
        planned: dict[str, object] = (
            {"retest_arms": [run.pk for run in arms]} if is_test else {"retest": False}
        )
        for run in arms:
            _save(run, options={**run.options, **planned})


def deciding_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that decide a launch's headline, outputs and exit code: the last arm, of a lift the skill's."""
    return [arms[-1] for arms in _arms(run for run in runs if run.arm != Arm.PREVIOUS)]


def _arms(runs: Iterable[Run]) -> Iterable[list[Run]]:
    """Return the runs that differ in nothing but their guidance together, in the order of the launch."""
    arms: dict[tuple[int, int, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.pk):
        arms.setdefault((run.suite_version_id, run.target_id, run.model), []).append(run)
    return arms.values()


def _save(run: Run, **values: object) -> None:
    for name, value in values.items():
        setattr(run, name, value)
    run.save(update_fields=list(values))
