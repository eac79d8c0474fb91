"""The runs page and the pages of runs: addresses, what is on them, and runs held against their baselines."""

from __future__ import annotations

from runs.comparing import compare_with_baseline
from tests.builders import close, make_run, make_trial

ADDRESS = "/p/tools/runs/"


def numbers(response):
    """Return the runs on a page, in its order."""
    return [row.run.pk for row in response.context["rows"]]


def tried(version, *outcomes, **changes):
    """Return a run whose scenarios went like this, held against its baseline."""
    run = make_run(version, **changes)
    for key, outcome in zip(("create", "export"), outcomes, strict=True):
        make_trial(run, key, outcome=outcome)
    compare_with_baseline(close(run))
    return run


def address(run, part=""):
    return f"/p/tools/runs/{run.pk}/{part}"


def page(client, run, query=""):
    return client.get(address(run) + query).content.decode()
