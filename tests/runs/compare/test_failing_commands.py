"""Why a scenario broke: the command that fails now and passed before, and what changed."""

from __future__ import annotations

import pytest

from evalhub.teams.access import default_project
from runs.compare.differences import causes_of, fingerprint_differences
from runs.compare.lost_scenarios import failing_commands, with_failing_commands, worst_losses
from runs.exchange.exports.summary_markdown import run_summary
from runs.models import CommandRecord, Trial
from runs.results.digests import digests_of
from tests.builders import make_compared, make_suite, make_version

pytestmark = pytest.mark.django_db
BROKE = "`./yard return blue --km 12` exits with 2: --distance is required; passed before"


def pair(before, now, messages=None):
    """Return a run and one that broke, whose trials ran these commands with their exit codes."""
    version = make_suite(default_project(), ["return"])
    runs = [make_compared(version, {"return": outcome}, trials=6) for outcome in ("pass", "fail")]
    for run, commands in zip(runs, (before, now), strict=True):
        trial = run.trial_set.earliest("pk")
        for n, (line, code) in enumerate(commands, 1):
            CommandRecord.objects.create(
                trial=trial, n=n, line=line, subcommand=line.split()[1], exit_code=code, failed=code != 0
            )
    Trial.objects.filter(run=runs[1]).update(detail={"messages": messages or {}})
    return runs


LIST, RETURN = "./yard list", "./yard return blue --km 12"


@pytest.mark.parametrize(
    ("before", "now", "messages", "said"),
    [
        ([(LIST, 0), (RETURN, 0)], [(LIST, 0), (RETURN, 2)], {"2": "yard return: --distance is required."}, BROKE),
        ([(RETURN, 0)], [(RETURN, 2)], {}, f"`{RETURN}`: same command, exit 0 → 2"),
        ([(RETURN, 2), (RETURN, 0)], [(RETURN, 2)], {}, None),
        ([(LIST, 0)], [(RETURN, 2)], {}, None),
        ([(RETURN, None)], [(RETURN, 2)], {}, None),
    ],
    ids=["a message", "no message", "failed before, too", "did not run before", "unknown before"],
)  # fmt: skip
def test_the_command_that_fails_now_is_named(before, now, messages, said):
    old, new = (run.trial_set.earliest("pk").pk for run in pair(before, now, messages))
    assert failing_commands([(old, new)]) == ({new: said} if said else {})


def test_pages_and_summary_say_it_before_the_gate():
    base, run = pair([(RETURN, 0)], [(RETURN, 2)], {"1": "yard return: --distance is required"})
    digests = digests_of([base.pk, run.pk], why_of=[run.pk])
    (broken,) = with_failing_commands(worst_losses(digests[base.pk], digests[run.pk], 3))
    assert broken.reason == f"{BROKE}. out.txt does not exist."
    section = run_summary(run).split("- `return`")[1]
    assert f"  - `{BROKE.replace('`', '')}`\n" in section


def test_what_changed_begins_with_the_tool_and_ends_with_the_suite():
    version = make_suite(default_project(), ["return"])
    later = make_version(version.suite, **{"return": {"prompt": "Another."}})
    before = dict.fromkeys(
        ("fixture", "suite_sha256", "judge", "model", "guidance", "tool_version", "suite_version"), "1"
    )
    after = dict.fromkeys(before, "2")
    base = make_compared(version, {"return": "pass"}, fingerprint=before)
    run = make_compared(later, {"return": "fail"}, fingerprint=after)
    labels = [each.label for each in fingerprint_differences(base, run)]
    assert labels == ["Tool", "Guidance", "Model", "Judge", "Fixture", "Suite version", "Suite"]
    assert [each.factor for each in causes_of(run, base)] == [
        "tool",
        "guidance",
        "model",
        "judge",
        "scenarios",
    ]


def test_a_suite_of_which_only_the_tools_files_changed_is_no_cause():
    version = make_suite(default_project(), ["return"])
    later = make_version(version.suite, **{"return": {}})
    parts = ("tool_version", "tool_files", "fixture", "suite_version", "suite_sha256")
    base = make_compared(version, {"return": "pass"}, fingerprint=dict.fromkeys(parts, "1"))
    run = make_compared(later, {"return": "fail"}, fingerprint=dict.fromkeys(parts, "2"))
    assert [each.label for each in fingerprint_differences(base, run)] == ["Tool", "Tool's files"]
    assert [each.factor for each in causes_of(run, base)] == ["tool"]
