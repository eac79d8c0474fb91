"""What people read of runs, comparisons and pages, without what differs from one time to the next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.test import Client

from evalhub.teams.models import ApiToken, Project
from runs.models import Run
from tests.builders import make_member
from tests.web.screen import Part, main_of, text_of

INTERNAL = frozenset([
    "id", "uuid", "url", "launch", "created", "started", "finished", "decided", "closed", "at", "by",
    "number", "trial", "seconds", "fingerprint", "stale", "trigger", "format", "waits", "counting",
    "compared_with", "p_corrected", "tampered", "base_trial", "new_trial", "against",
    "artifacts", "assignee", "triaged", "class_probability", "class_trials", "too_few_trials", "k",
    "pass_at_k", "batch", "confirmation", "guidance", "dearer",
])  # fmt: skip
"""Keys that hold numbers of rows, moments and times, what they decide, or what a program alone reads."""
OF_RUNS = frozenset(("run", "runs", "baseline", "pooled", "runs_before", "runs_after"))
"""Keys whose numbers are those of runs."""
TIMED = "trial/seconds"
OF_A_MEASURE = ("verdict", "before", "after", "lower", "upper", "trials")
SAID = "h1, h2, h3, h4, p, li, dd, summary, figcaption, caption, [role=status]"
UNSAID = "nav, table, svg, .actions, .menu, label, button, select, textarea, script, style, template"
"""Parts of a page that aren't sentences, or whose figures stand in the documents."""
FACTS_OF_NOW = ("Started", "Duration", "evalhub", "Sandbox", "Tags")
"""Facts that another time, release or machine changes."""
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
TIMES = re.compile(
    r"just now|\d+ (?:second|minute)s? ago|(?<=time per trial )[^(]*\([^)]*\)|\b\d+(?:\.\d+)? (?:ms|s|min|h)\b(?: \d+ s\b)?"
    rf"|\b\d{{1,2}} (?:{MONTHS})\b(?: \d{{4}})?(?:, \d\d:\d\d)?"
)
HASHES = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b")
NUMBERED = re.compile(r"\b[Rr]uns? \d+(?:(?:, | and )\d+)*\b(?! or more)")
RULE = re.compile(r"\s*─+")
"""What a heading of a command fills its line with."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Reader:
    """An admin of a project, who calls its runs A, B, C … in the order in which they were requested."""

    def __init__(self, project: Project) -> None:
        self.project = project
        owner = make_member(project)
        _, secret = ApiToken.issue(project, owner, name="pins", role="admin")
        self.client = Client()
        self.client.force_login(owner)
        self._api = Client(headers={"Authorization": f"Bearer {secret}"})

    @property
    def runs(self) -> list[Run]:
        """The project's runs, oldest first."""
        return list(Run.objects.filter(project=self.project).order_by("pk"))

    def get(self, path: str) -> Any:
        """Return what REST answers, as people read it."""
        return self._keep(self._ask(path))

    def read_run(self, run: Run) -> dict[str, Any]:
        """Return a run's document, with how its trials ended by scenario."""
        response = self._ask(f"/runs/{run.pk}?expand=trials")
        return {**self._keep(response["run"]), "ended": _read_trials(response["trials"])}

    def read_page(self, address: str) -> list[str]:
        """Return a page's headings, sentences and facts, in order."""
        response = self.client.get(address)
        assert response.status_code == 200, address
        return [self.say(text) for text in _find_said(main_of(response))]

    def read_lines(self, text: str) -> list[str]:
        """Return the lines that a command printed."""
        return [self.say(line) for line in text.splitlines() if line.strip()]

    def say(self, text: str) -> str:
        """Return a text without times and hashes, with letters for the numbers of runs."""
        words = TIMES.sub("…", re.sub(r"\s+", " ", RULE.sub("", text)).strip())
        words = NUMBERED.sub(
            lambda found: re.sub(r"\d+", lambda run: str(self._name(int(run[0]))), found[0]), words
        )
        words = re.sub(r"\b([Tt]rials?|[Ll]aunch) \d+\b(?! of)", r"\1 …", words)
        return HASHES.sub("#", words)

    def _name(self, run_id: int) -> str | int:
        names = {run.pk: letter for run, letter in zip(self.runs, LETTERS, strict=False)}
        return names.get(run_id, run_id)

    def _ask(self, path: str) -> Any:
        response = self._api.get(f"/api/v1{path}")
        assert response.status_code == 200, response.content
        return response.json()

    def _keep(self, value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            if "with_skill" in value:
                shares = f"{value['without']:.0%} → {value['with_skill']:.0%}"
                return f"{value['scenario']}: {value['text']} {value['kind']}, {shares}"
            kept = {name: self._keep(each, name) for name, each in value.items() if name not in INTERNAL}
            return {
                name: each
                for name, each in kept.items()
                if each is not False and each not in (None, "", [], {})
            }
        if isinstance(value, list):
            if value and isinstance(value[0], Mapping) and "verdict" in value[0] and "measure" in value[0]:
                return self._keep_measures(value)
            return [self._keep(each, key) for each in value]
        if key in OF_RUNS and isinstance(value, int):
            return self._name(value)
        if isinstance(value, float):
            return float(f"{value:.4g}")
        return self.say(value) if isinstance(value, str) else value

    def _keep_measures(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            row["measure"]: [self._keep(row.get(name)) for name in OF_A_MEASURE]
            for row in rows
            if row["measure"] != TIMED
        }


def _read_trials(trials: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many trials of each scenario ended in which way."""
    found: dict[str, dict[str, int]] = {}
    for trial in sorted(trials, key=lambda each: (each["scenario"], each["retest"], each["index"])):
        again = "run again, " if trial["retest"] else ""
        why = trial["error"] or trial["reason"] if trial["outcome"] != "pass" else ""
        ends = found.setdefault(trial["scenario"], {})
        said = f"{again}{trial['outcome']}{why and f': {why}'}"
        ends[said] = ends.get(said, 0) + 1
    return found


def _find_said(page: Part) -> Iterator[str]:
    """Yield a page's headings, sentences and facts; of elements within each other, the inner one's."""
    for unsaid in page.all(UNSAID):
        unsaid.node.decompose()
    for link in page.all("a[href*='/trials/']"):
        if link.text.isdigit():
            link.node.string = "…"
    for part in page.all(SAID):
        if not part.text or (part.node.select_one(SAID) and not part.node.name.startswith("h")):
            continue
        term = part.node.find_previous_sibling("dt") if part.node.name == "dd" else None
        if term is None:
            yield part.text
        elif (name := text_of(term)) not in FACTS_OF_NOW:
            yield f"{name}: {part.text}"
