"""Search the texts of trials."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Query, Router, Schema
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.lib.timestamps import moment
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from runs.results.search.named_search import TrialSearch, find_trials
from runs.results.search.trial_search import MOST_CANDIDATES

router = Router(tags=["search"])


class SearchParameters(BaseModel):
    """What to search for, and where."""

    q: Annotated[Text, Field(min_length=1, max_length=200)]
    """Words that all occur; `"a phrase"`, `sta*`, `-excluded`."""
    place: Literal["", "commands", "outputs", "judge", "answer"] = ""
    suite: Text = ""
    target: Text = ""
    outcome: Literal["", "pass", "fail", "error"] = ""
    tool_version: Text = ""
    guidance: Text = ""
    """A guidance's id."""
    by: Text = ""
    since: Text = ""
    """First day, as 2026-11-09, in UTC."""
    until: Text = ""
    """Last day."""
    limit: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 20


class HitOut(Schema):
    trial: int
    run: int
    suite: str
    scenario: str
    index: int
    outcome: str
    target: str
    finished: str | None
    place: str
    """Where the passage is: commands, outputs, judge or answer."""
    passage: str
    marks: list[tuple[int, int]]
    """Start and end of each match in the passage."""
    score: float
    url: str


class HitsOut(Schema):
    items: list[HitOut]
    """Best first."""
    total: int
    """Ranked matches; of a common word, only the newest are."""


@router.get("/search", auth=Bearer(), response=declare_answers(HitsOut))
def search(request: ApiRequest, parameters: Query[SearchParameters]) -> dict[str, Any]:
    """Search commands, first lines of outputs, judges' statements and answers of trials."""
    filters = parameters.model_dump(exclude={"limit"})
    hits = find_trials(request.access.project, TrialSearch(**filters))
    items = [
        {
            "trial": hit.id,
            "run": hit.run,
            "suite": hit.suite_slug,
            "scenario": hit.scenario,
            "index": hit.index,
            "outcome": hit.outcome,
            "target": hit.target,
            "finished": moment(hit.finished) if hit.finished else None,
            "place": hit.passage.column,
            "passage": hit.passage.text,
            "marks": hit.passage.marks,
            "score": hit.score,
            "url": f"/trials/{hit.id}/",
        }
        for hit in hits[: parameters.limit]
    ]
    return {"items": items, "total": len(hits)}
