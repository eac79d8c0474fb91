"""The runs page and the pages of runs: addresses, what is on them, and runs held against their baselines."""

from __future__ import annotations

from tests.builders import make_compared
from tests.web.screen import main_of, parse

ADDRESS = "/p/tools/runs/"


def numbers(response):
    """Return the runs on a page, in its order."""
    page = parse(response)
    rows = page.table("Runs").rows if "Runs" in page.tables else []
    return [int(row.cell("Run").text) for row in rows]


def tried(version, *outcomes, **changes):
    """Return a run whose two scenarios went like this, held against its baseline."""
    return make_compared(
        version, dict(zip(("create", "export"), outcomes, strict=True)), **{"trials": 1, **changes}
    )


def address(run, part=""):
    return f"/p/tools/runs/{run.pk}/{part}"


def scenarios(client, run, query=""):
    """Return the scenarios that a run's page lists, in its order."""
    return [row.header for row in page(client, run, query).table("Scenarios").rows if row.all("th")]


def page(client, run, query=""):
    """Return the main part of a run's page."""
    return main_of(client.get(address(run) + query))
