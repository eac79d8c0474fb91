"""A run in which a third of the trials or more hit errors says why it has no verdict, wherever one would be."""

from __future__ import annotations

from tests.runs.past_runs import past_run
from tests.web.results.runs.pages import ADDRESS, page
from tests.web.screen import main_of

SENTENCE = (
    "Run {} has no verdict: 2 of 4 trials hit errors, a third or more. Fix their cause, then retry them."
)


def pair(version):
    before = past_run(version, {"create": ("pass",) * 2, "export": ("pass",) * 2})
    return before, past_run(version, {"create": ("error", "fail"), "export": ("error", "pass")})


def test_its_page_says_so(signed_in, version):
    before, run = pair(version)
    outcome = page(signed_in(), run).region("Outcome")
    assert SENTENCE.format(run.pk) in outcome
    assert outcome.badges == []
    assert "has no verdict" not in page(signed_in(), before)


def test_the_list_of_runs_says_so(signed_in, version):
    pair(version)
    newest, oldest = main_of(signed_in().get(ADDRESS)).table("Runs").rows
    assert "no verdict: errors" in newest.cell("Verdict")
    assert "errors" not in oldest.cell("Verdict")


def test_the_comparison_says_so(signed_in, version):
    before, run = pair(version)
    shown = main_of(signed_in().get(f"/p/tools/compare/?runs={before.pk},{run.pk}")).region("Verdict")
    assert shown.text == f"! {SENTENCE.format(run.pk)}"


def test_trends_and_pins_leave_it_out(signed_in, version):
    _, run = pair(version)
    client = signed_in()
    values = main_of(client.get(f"/p/tools/trends/?suite={version.suite.slug}&values=shown"))
    assert "not measured" in values
    answer = client.post(f"/p/tools/runs/{run.pk}/baseline/", follow=True)
    assert "can't be a baseline" in main_of(answer)
