"""The filters of runs as REST takes them."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from ninja import Router
from pydantic import BaseModel, Field

from evalhub.lib.storable_text import Text
from evalhub.web.rest.request_body import Key
from evaluators.statistics.measure_change import ChangeVerdict
from runs.results.address_filters import MOST_VALUES
from runs.results.run_filters import RunListFilters

router = Router(tags=["runs"])

Several = Annotated[list[Text], Field(max_length=MOST_VALUES)]
RunStates = list[Literal["pass", "fail", "error", "open", "cancelled"]]


class RunFilterValues(BaseModel):
    """Filters of runs; omitted ones match every run. Repeat one to match any of several values."""

    q: Text = ""
    suite: Several = []
    target: Several = []
    model: Several = []
    tool_version: Several = []
    guidance: Annotated[list[Key], Field(max_length=MOST_VALUES)] = []
    tag: Several = []
    verdict: list[ChangeVerdict] = []
    state: RunStates = []
    by: Several = []
    """Names of the people who started it."""
    since: date | None = None
    """First day of the request, in UTC."""
    until: date | None = None
    """Last day."""

    def filters(self) -> RunListFilters:
        return RunListFilters(
            q=self.q,
            suite=tuple(self.suite),
            target=tuple(self.target),
            model=tuple(self.model),
            tool_version=tuple(self.tool_version),
            guidance=tuple(map(str, self.guidance)),
            tag=tuple(self.tag),
            verdict=tuple(verdict.value for verdict in self.verdict),
            state=tuple(self.state),
            by=tuple(self.by),
            since=self.since.isoformat() if self.since else "",
            until=self.until.isoformat() if self.until else "",
        )
