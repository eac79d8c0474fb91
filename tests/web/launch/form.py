"""Fill in the form of a new run and read its plan."""

from __future__ import annotations

from tests.web.screen import parse

ADDRESS = "/p/tools/runs/new/"
FETCHED = {"HX-Request": "true"}


def given(**changes):
    return {"suite": "basics", "targets": ["local"], "trials": "3", "judge": "on", "retest": "on", **changes}


def plan_of(client, **changes):
    """Return the text of the plan for a form."""
    return parse(client.post(ADDRESS, given(**changes), headers=FETCHED)).region("Plan").text
