import pytest
from rich.cells import cell_len

from evaluators.grading.assertions import CaseVerdict
from evaluators.grading.suite_result import CaseResult, CaseTrial, EarlierResult, SuiteRun
from evaluators.grading.suite_summary import suite_summary

pytestmark = pytest.mark.spec("tool-forge", "Summary for the console")

CASES = (
    ("001", "trigger phrase — direct weather question", 1250, ""),
    ("002", "trigger phrase — asking about temperature", 1100, ""),
    ("003", "trigger phrase — general conditions", 1300, ""),
    ("004", "rephrased — casual wording", 980, ""),
    ("005", "no raw JSON leak", 2100, 'responseNotContains: found "fetchedAt" in response'),
    ("006", "disambiguation — current not forecast", 1200, ""),
)
SAMPLE = """\
═══ get_weather — golden evals ════════════════════════════════════
  ✓ gs-get-weather-001  trigger phrase — direct weather question      1250ms
  ✓ gs-get-weather-002  trigger phrase — asking about temperature     1100ms
  ✓ gs-get-weather-003  trigger phrase — general conditions           1300ms
  ✓ gs-get-weather-004  rephrased — casual wording                    980ms
  ✗ gs-get-weather-005  no raw JSON leak                              2100ms
    → responseNotContains: found "fetchedAt" in response
  ✓ gs-get-weather-006  disambiguation — current not forecast         1200ms
───────────────────────────────────────────────────────────────────
  5/6 passed | 1 failed | 0 skipped assertions | 7930ms total
  ⚠ Description hash mismatch (generated: abc123, current: def456)
"""


def run(*cases, **changes):
    known = {
        "run_id": "r2",
        "timestamp": "",
        "tier": "golden",
        "tool_name": "get_weather",
        "agent_endpoint": "",
    }
    return SuiteRun(**{**known, "cases": cases, **changes})


def case(id="a", description="", milliseconds=0, error=""):
    verdict = CaseVerdict(passed=not error, error=error)
    trial = CaseTrial("fail" if error else "pass", milliseconds / 1000, verdict)
    return CaseResult(id, description, (trial,))


def weather(**changes):
    return run(*(case(f"gs-get-weather-{n}", *rest) for n, *rest in CASES), **changes)


def stale(**changes):
    return {
        "stale": True,
        "generated_hash": "abc123",
        "description_hash": "def456",
        "staleness_warnings": (
            "Evals for get_weather generated against description hash abc123, current is def456. "
            "Results may not reflect current routing contract.",
        ),
        **changes,
    }


def test_it_matches_the_contracts_sample_with_aligned_columns():
    assert suite_summary(weather(**stale())) == SAMPLE


def test_other_warnings_are_printed_whole():
    warnings = (*stale()["staleness_warnings"], "Registry has grown from 2 to 10 tools.")
    text = suite_summary(weather(**stale(staleness_warnings=warnings)))
    assert text.endswith("current: def456)\n  ⚠ Registry has grown from 2 to 10 tools.\n")


def test_a_description_is_cut_to_the_width():
    text = suite_summary(run(case("a", "天気予報" * 30, 12345)))
    assert "…" in text
    assert max(map(cell_len, text.splitlines())) <= 76


def test_a_description_of_several_lines_stays_on_one():
    assert "  ✓ a  one two" in suite_summary(run(case("a", "one\n two")))


def test_ids_and_errors_are_never_cut():
    id, error = "i" * 90, "e" * 90
    text = suite_summary(run(case(id, "d", 1, error)))
    assert id in text
    assert error in text


@pytest.mark.spec("tool-forge", "Regressions and new passes against a baseline")
def test_regressions_and_new_passes_are_printed():
    baseline = EarlierResult("r1", {"a": True, "b": False})
    text = suite_summary(run(case("a", error="x: y"), case("b"), baseline=baseline))
    assert "  REGRESSIONS against r1 (1): a\n" in text
    assert "  New passes against r1 (1): b\n" in text


def test_an_endpoint_that_is_down_is_reported():
    down = CaseResult("a", "", (CaseTrial("error", 0, CaseVerdict(passed=False, error="refused")),))
    assert "    → agent error: refused\n" in suite_summary(run(down))


@pytest.mark.spec("tool-forge", "Skipped values come with a warning")
def test_skipped_values_are_shown_below_their_case():
    skipped = "responseContains: '{{seed:a}}' was skipped: {{seed:a}} unresolved."
    verdict = CaseVerdict(passed=True, assertions_skipped=1, warnings=(skipped,), vacuous=True)
    trial = CaseTrial("pass", 0, verdict)
    lines = suite_summary(run(CaseResult("a", "", (trial,)), case("b"))).splitlines()
    assert lines[2:4] == [f"    ⚠ {skipped}", "    ⚠ Nothing was asserted, so it passed as vacuous."]
    assert lines[4].startswith("  ✓ b")


def test_a_run_without_cases_is_summed_up():
    assert "  0/0 passed | 0 failed" in suite_summary(run(tool_name=None))


def test_an_unknown_time_is_not_zero():
    untimed = CaseResult("b", "", (CaseTrial("pass"),))
    lines = suite_summary(run(case("a", "d", 12), untimed)).splitlines()
    assert lines[1].endswith("  12ms")
    assert lines[2].endswith("  ·")
    assert lines[-1].endswith("| 12ms total of 1 cases")
    assert suite_summary(run(untimed)).endswith("| · total\n")
