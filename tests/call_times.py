"""Times every test, and fails a pass on a call that takes too long: pytest's `-p tests.call_times`, as `tests.all` has it.

A call may take `MOST_UNITS` units. A unit is the time of a fixed loop that is timed while the tests run, about 1.3
seconds on an idle machine, so a busy machine is given more time; the slowest loop beside a call counts. Longer tests
are marked `slow`, or stand in `JOURNEYS`.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

MOST_UNITS = 3
TURNS = 3_000_000
"""Turns of the loop."""
LOOPS_A_UNIT = 40
PAUSE = 2.0
"""Seconds between two loops."""
DEAREST = 10
MOST_JOURNEYS = 50
JOURNEYS = (
    "tests/browser/test_every_page.py::test_no_main_page_gives_reason_to_complain",
    "tests/browser/test_every_page.py::test_what_an_upload_would_change_gives_no_reason_to_complain",
    "tests/browser/test_first_screens.py::test_what_a_page_answers_is_seen_at_once",
    "tests/browser/test_replaying.py::test_a_replay_opens_on_the_first_failure_plays_and_jumps",
    "tests/browser/test_swapping.py::test_regressions_are_narrowed_while_one_types_and_triage_swaps_card_and_counts",
    "tests/browser/test_trends_page.py::test_a_brush_zooms_and_a_press_opens_a_card_that_compares_from_there",
    "tests/browser/test_trends_page.py::test_keys_read_the_chart_and_open_a_run",
    "tests/commands/test_ci_github.py::test_it_gets_outputs_annotations_and_transcripts",
    "tests/commands/test_ci_walk.py::test_a_change_that_breaks_the_tool_is_red",
    "tests/commands/test_lift.py::test_one_trial_of_each_case_shows_both_arms_and_their_statements",
    "tests/runs/engine/test_ordinary_user.py::test_calls_under_a_tracer_of_the_agent_are_counted",
    "tests/runs/sandbox/test_egress.py::test_a_trial_cannot_take_the_filter_away",
    "tests/runs/sandbox/test_egress.py::test_names_are_resolved_by_a_resolver_on_loopback",
    "tests/runs/sandbox/test_egress.py::test_none_reaches_nothing",
    "tests/runs/sandbox/test_strangers.py::test_gunicorn_answers_a_long_address_as_json",
    "tests/worker/test_nothing_is_lost.py::test_a_stopping_worker_finishes_its_trials_only",
    "tests/worker/test_workers.py::test_a_running_trial_shows_worker_and_last_call",
)
"""Tests that take longer, because they do as a person does from the first page to the last, or wait for real processes."""


def find_long_calls(
    calls: list[tuple[str, float, float]], loops: list[tuple[float, float]]
) -> list[tuple[str, float, float]]:
    """Return the calls above the limit as (test, seconds, units), longest first.

    A call is (test, its end as epoch seconds, its seconds), a loop (its end as epoch seconds, its seconds).
    """
    found = []
    for test, end, seconds in calls:
        beside = [each for at, each in loops if end - seconds <= at <= end + PAUSE]
        if beside and (units := seconds / (LOOPS_A_UNIT * max(beside))) > MOST_UNITS:
            found.append((test, seconds, units))
    return sorted(found, key=lambda each: -each[2])


def time_loop() -> float:
    """Return the seconds that the fixed loop takes now."""
    began = time.perf_counter()
    for _ in range(TURNS):
        pass
    return time.perf_counter() - began


class CallTimes:
    """What the process that distributes the tests knows of their times."""

    def __init__(self) -> None:
        self.loops: list[tuple[float, float]] = []
        self.calls: list[tuple[str, float, float]] = []
        self.processor: dict[str, float] = {}
        self.long: list[tuple[str, float, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._time_loops, daemon=True)
        self._thread.start()

    def _time_loops(self) -> None:
        while not self._over.wait(PAUSE):
            seconds = time_loop()
            self.loops.append((time.time(), seconds))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and "slow" not in report.keywords:
            self.calls.append((report.nodeid, report.stop, report.duration))
        if report.when == "teardown":
            self.processor[report.nodeid] = dict(report.user_properties).get("processor_seconds", 0.0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._over.set()
        self._thread.join()
        ordinary = [each for each in self.calls if each[0].partition("[")[0] not in JOURNEYS]
        self.long = find_long_calls(ordinary, self.loops)
        if self.long and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        dearest = sorted(self.processor.items(), key=lambda each: -each[1])[:DEAREST]
        terminalreporter.section(f"{len(dearest)} dearest tests, by processor time")
        for test, seconds in dearest:
            terminalreporter.line(f"{seconds:6.1f} s  {test}")
        if self.long:
            terminalreporter.section("Calls that take too long")
            for test, seconds, units in self.long:
                terminalreporter.line(
                    f"{seconds:6.1f} s, {units:.1f} units  {test}: at most {MOST_UNITS} units. "
                    "Make it cheaper, or mark it slow."
                )


class ProcessorTimes:
    """What a process that runs tests tells of them: their processor time, with that of processes they waited for."""

    def pytest_runtest_logstart(self) -> None:
        self.began = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("processor_seconds", _processor_seconds() - self.began))
        return report


def _processor_seconds() -> float:
    return sum(os.times()[:4])


def pytest_configure(config: pytest.Config) -> None:
    distributes = config.getoption("numprocesses", None)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CallTimes())
    if hasattr(config, "workerinput") or not distributes:
        config.pluginmanager.register(ProcessorTimes())
