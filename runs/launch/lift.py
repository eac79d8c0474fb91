"""The arms of a lift: a suite's skill, and the same guidance without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from runs.errors import RequestError
from scenarios.adopted_guidance import last_guidance
from scenarios.formats.agent_skills import is_trigger_suite
from scenarios.guidance import without_skills
from scenarios.models import Guidance, SuiteVersion
from scenarios.storing import guidance_files, keep_guidance, plan_guidance

LIFT_OPTIONS: dict[str, Any] = {"until_decided": True, "experiment": True}
"""What every lift is: both arms are experiments, because their looks would bias a baseline."""
NO_SKILL = "no skill"
"""The name of the guidance without the skill."""


def drop_triggers(versions: Sequence[SuiteVersion]) -> list[SuiteVersion]:
    """Return the suite versions without those of trigger queries, which can't pass without a skill."""
    return [each for each in versions if not is_trigger_suite(each.suite.format, each.suite.slug)]


def lift_arms(versions: Sequence[SuiteVersion], chosen: Sequence[Guidance]) -> list[Guidance]:
    """Return for each suite its guidance without the skill, which may not be stored yet, and the guidance with it.

    That is the one `chosen`, else the last upload's. Raises `RequestError` for several chosen ones and without a skill.
    """
    if not versions:
        raise RequestError("Trigger queries have no lift. Name the suite of the skill's cases.")
    found: list[Guidance] = []
    for version in versions:
        suite = version.suite
        own = [each for each in chosen if each.suite_id == suite.pk]
        if len(own) > 1:
            raise RequestError("A lift compares one version of a skill with none. Choose one version.")
        skill = own[0] if own else last_guidance(suite)
        files = guidance_files(skill)
        rest = without_skills(files)
        if skill is None or rest == files:
            raise RequestError(
                f"{suite.name} has no skill, so there is no lift. Upload a folder with SKILL.md and evals/, or compare"
                " versions of its guidance."
            )
        found += [plan_guidance(suite, rest, name=NO_SKILL), skill]
    return found


def keep_arms(arms: Sequence[Guidance], *, by: User | None) -> list[Guidance]:
    """Return the arms of a lift, stored."""
    return [
        each if each.pk else keep_guidance(each.suite, guidance_files(each), by=by, name_if_new=NO_SKILL)[0]
        for each in arms
    ]
