"""Say in a sentence which version of a suite's guidance is best, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalhub.lib.numbers import counted, percent
from evaluators.statistics.measure_change import UNDECIDED, ChangeVerdict
from runs.compare.guidance.guidance_strip import ComparedVersion, GuidanceStrip
from runs.compare.measure_changes import PASS
from runs.compare.shown_changes import shown_verdict
from scenarios.models import Guidance

MOST_NAMES = 2


@dataclass(frozen=True)
class GuidanceAnswer:
    """The answer as a title and a sentence; of the next steps at most one is set."""

    title: str
    sentence: str
    adopt: Guidance | None = None
    """The version to adopt."""
    run: tuple[Guidance, ...] = ()
    """Versions to run together."""
    edit: Guidance | None = None
    """The version whose text to change next."""


def answer_of_strip(strip: GuidanceStrip, stored: Iterable[Guidance]) -> GuidanceAnswer:
    """Return which version is best: one that improved on what the suite uses, else what it uses if all else regressed.

    `stored` are the newest versions, also those that never ran.
    """
    adopted, versions = strip.adopted, [each.guidance for each in strip.versions]
    untried = [each for each in stored if each not in versions and each != adopted]
    if not versions:
        first = [adopted] if adopted else []
        return GuidanceAnswer(
            "No run had guidance yet",
            "Run the suite to see how it does.",
            run=tuple([*first, *untried][:MOST_NAMES]),
        )
    newest = versions[-1]
    if adopted is None:
        return GuidanceAnswer(
            "The suite uses no guidance",
            f"{counted(len(versions), 'version')} ran in experiments.",
            run=(newest,),
        )
    if adopted not in versions:
        return GuidanceAnswer(
            f"{adopted} has not run here",
            "The suite uses it, so nothing shows how good it is.",
            run=(adopted,),
        )
    if len(versions) == 1:
        title, sentence = f"Only {adopted} has run", "Run another text to see whether it is better."
        if untried:
            return GuidanceAnswer(title, sentence, run=(adopted, untried[0]))
        return GuidanceAnswer(title, sentence, edit=adopted)
    return _answer_against(strip, adopted)


def _answer_against(strip: GuidanceStrip, adopted: Guidance) -> GuidanceAnswer:
    """Return the answer where the adopted version and others ran."""
    compared = list(strip.against_adopted.values())
    better = [each for each in compared if each.verdict is ChangeVerdict.IMPROVED]
    if better:
        best = max(better, key=_pass_rate)
        return GuidanceAnswer(
            f"{best.after} is the best {strip.document} so far",
            f"{_size(best)} {adopted}, which the suite uses.",
            adopt=best.after,
        )
    others = [each.guidance for each in strip.versions if each.guidance != adopted]
    open_ones = [
        version
        for version in others
        if version.pk not in strip.against_adopted
        or strip.against_adopted[version.pk].verdict in (None, *UNDECIDED)
    ]
    worse = [each for each in compared if each.verdict is ChangeVerdict.REGRESSED]
    if len(worse) == len(others):
        title = f"{adopted} is the best {strip.document} so far"
        return GuidanceAnswer(title, f"The suite uses it. {_against_all(len(worse))}", edit=adopted)
    title = f"No version is known to be better than {adopted}"
    if open_ones:
        few = len(open_ones) <= MOST_NAMES
        names = ", ".join(map(str, open_ones)) if few else f"{len(open_ones)} other versions"
        return GuidanceAnswer(title, f"The suite uses it. Undecided: {names}.", run=(adopted, open_ones[-1]))
    return GuidanceAnswer(title, "The suite uses it.", edit=adopted)


def _against_all(number: int) -> str:
    return "The other version regressed." if number == 1 else f"All {number} other versions regressed."


def _pass_rate(compared: ComparedVersion) -> float:
    change = compared.change(PASS)
    return (change.effect or 0.0) if change else 0.0


def _size(compared: ComparedVersion) -> str:
    """Return by how much a version improved, up to the name of what it is compared with."""
    change = compared.change(PASS)
    if change and change.verdict is ChangeVerdict.IMPROVED:
        return f"{percent(change.after)} pass, against {percent(change.before)} with"
    shown = shown_verdict(compared.findings.compared.headline)
    return f"{shown.deciding.label} {shown.deciding.size} against" if shown else "It improved on"
