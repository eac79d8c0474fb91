"""The usage of a tool over REST."""

from __future__ import annotations

from runs.models import FlagConfusion, SubcommandMeasure
from tests.builders import make_run, make_suite


def test_usage_gives_subcommands_and_confusions(api, project):
    run = make_run(make_suite(project), tool_version="2.0")
    SubcommandMeasure.objects.create(
        run=run, subcommand="export", calls=10, errors=4, helps=3, helps_before=1
    )
    FlagConfusion.objects.create(
        run=run, subcommand="export", kind="invented", typed="--all", calls=1, trials=1
    )
    found = api("viewer").get("/usage", tool_version="2.0").json()
    (subcommand,), (confusion,) = found["subcommands"], found["confusions"]
    assert (subcommand["error_rate"], subcommand["helps_before"], subcommand["helps_after"]) == (0.4, 1, 2)
    assert subcommand["error_rate_change"] is None
    assert (confusion["kind"], confusion["typed"], confusion["newest_run"]) == ("invented", "--all", run.pk)
    assert api("viewer").get("/usage", tool_version="3.0").json()["runs"] == 0
