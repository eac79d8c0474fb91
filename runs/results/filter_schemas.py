"""The filters of runs as REST takes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import date
from typing import Annotated, Any, Literal, TypeVar

from ninja import Router
from pydantic import BaseModel, Field, create_model

from evalhub.lib.storable_text import Text
from evalhub.web.rest.request_body import Key
from evaluators.statistics.measure_change import ChangeVerdict
from runs.results.address_filters import MOST_VALUES, AddressFilters
from runs.results.run_filters import RunListFilters

router = Router(tags=["runs"])

Several = Annotated[list[Text], Field(max_length=MOST_VALUES)]
RunStates = list[Literal["pass", "fail", "error", "open", "cancelled"]]


Model = TypeVar("Model", bound=BaseModel)


def add_filters(filters: type[AddressFilters], *names: str) -> Callable[[type[Model]], type[Model]]:
    """Add a list's filters to the parameters of an operation: texts, some repeatable."""
    kinds: dict[str, Any] = {
        each.name: (Several, []) if isinstance(each.default, tuple) else (Text, "")
        for each in fields(filters)
        if each.name in names
    }

    def add(model: type[Model]) -> type[Model]:
        parts: dict[str, Any] = {"__module__": model.__module__, "__doc__": model.__doc__, **kinds}
        return create_model(model.__name__, __base__=model, **parts)

    return add


@add_filters(RunListFilters, "q", "suite", "target", "model", "tool_version", "tag", "by")
class RunFilterValues(BaseModel):
    """Filters of runs; omitted ones match every run. Repeat one to match any of several values."""

    guidance: Annotated[list[Key], Field(max_length=MOST_VALUES)] = []
    verdict: list[ChangeVerdict] = []
    state: RunStates = []
    since: date | None = None
    """First day of the request, in UTC."""
    until: date | None = None
    """Last day."""

    def filters(self) -> RunListFilters:
        given: dict[str, Any] = {each.name: getattr(self, each.name, ()) for each in fields(RunListFilters)}
        for name, value in given.items():
            several = isinstance(value, list | tuple)
            given[name] = tuple(map(str, value)) if several else str(value or "")
        return RunListFilters(**given)
