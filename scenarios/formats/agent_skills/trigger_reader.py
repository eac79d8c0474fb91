"""Read which skill a prompt must load."""

from __future__ import annotations

from evaluators.grading.gates.transcript_gate import SkillLoaded, SkillNotLoaded
from evaluators.model import Json
from scenarios.formats.agent_skills.case_files import SkillContext
from scenarios.formats.agent_skills.case_lists import TRIGGER_KEYS
from scenarios.formats.positions import Location
from scenarios.formats.problems import Problem
from scenarios.formats.validation import did_you_mean, kind

_NONE = frozenset(("", "none", "null", "no_skill"))
"""What authors write for no skill."""


def read_trigger(
    case: dict[str, Json], context: SkillContext, at: Location, problems: list[Problem]
) -> tuple[SkillLoaded | SkillNotLoaded, ...]:
    """Return the gates on which skills are loaded, for a case that says so: of the skill it names, else of its own."""
    key, wanted = context.trigger_of(case)
    if isinstance(wanted, str) and (name := read_skill_name(wanted)) in _names(context):
        return (SkillLoaded(skill=name),)
    if isinstance(wanted, str):
        wanted = _unknown_skill(key, wanted, context, at, problems)
        if wanted is None:
            return ()
    if wanted is None and key and len(context.skills) > 1:
        # Beside names of skills, null is none of them.
        wanted = False
    if wanted is None:
        return ()
    if not isinstance(wanted, bool):
        what = f"'{key}' must be true or false, not {kind(wanted)}."
        fix = "Write true or false without quotes."
        problems.append(context.document.problem((*at, key), what, fix=fix, id="format/wrong-type"))
        return ()
    if not wanted:
        return tuple(SkillNotLoaded(skill=skill.name) for skill in context.skills)
    return (SkillLoaded(skill=context.skills[0].name),) if len(context.skills) == 1 else ()


def read_skill_name(text: str) -> str:
    """Return the name of a skill, before which a plug-in's may stand."""
    return text.strip().rpartition(":")[2]


def _names(context: SkillContext) -> list[str]:
    return [skill.name for skill in context.skills]


def _unknown_skill(
    key: str, wanted: str, context: SkillContext, at: Location, problems: list[Problem]
) -> bool | None:
    """Return False for no skill of the upload; None with an error for what is probably a mistake."""
    if key not in TRIGGER_KEYS and read_skill_name(wanted).lower() in _NONE:
        return False
    close = did_you_mean(wanted, _names(context))
    what = f"'{key}' is '{wanted}', and the upload has no skill of that name."
    if key in TRIGGER_KEYS or close:
        fix = close or "Write true or false without quotes, or the name of a skill."
        problems.append(context.document.problem((*at, key), what, fix=fix, id="format/wrong-type"))
        return None
    fix = "Upload that skill, too; until then, the query checks that the uploaded ones aren't loaded."
    problems.append(context.document.problem((*at, key), what, fix=fix, id="format/unknown-skill", lint=True))
    return False
