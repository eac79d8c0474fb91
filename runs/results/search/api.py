"""Search the texts of trials."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Query, Router, Schema
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.teams.bearer import ApiRequest, Bearer
from evalhub.web.rest.errors import declare_answers
from runs.results.filter_schemas import filters_of
from runs.results.search.named_search import TrialSearch, find_trials
from runs.results.search.trial_search import MOST_CANDIDATES, FoundTrial

router = Router(tags=["search"])


@filters_of(TrialSearch, "suite", "target", "tool_version", "guidance", "by", "since", "until")
class SearchParameters(BaseModel):
    """What to search for, and where: `guidance` is an id, `since` and `until` are days such as 2026-11-09, in UTC."""

    q: Annotated[Text, Field(min_length=1, max_length=200)]
    """Words that all occur; `"a phrase"`, `sta*`, `-excluded`."""
    place: Literal["", "commands", "outputs", "judge", "answer"] = ""
    outcome: Literal["", "pass", "fail", "error"] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] = 20


class HitsOut(Schema):
    items: list[FoundTrial]
    """Best first."""
    total: int
    """Ranked matches; of a common word, only the newest are."""


@router.get("/search", auth=Bearer(), response=declare_answers(HitsOut))
def search(request: ApiRequest, parameters: Query[SearchParameters]) -> dict[str, Any]:
    """Search commands, first lines of outputs, judges' statements and answers of trials."""
    filters = parameters.model_dump(exclude={"limit"})
    hits = find_trials(request.access.project, TrialSearch(**filters))
    return {"items": hits[: parameters.limit], "total": len(hits)}
