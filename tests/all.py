"""Run every test that this machine can run: `python -m tests.all [pytest's arguments]`, which is `make test`.

First the table tests of the pure parts, in seconds; then everything else on SQLite; then the tests that use the
database again on a private PostgreSQL with a private Redis, except those of `SAME_ON_EVERY_DATABASE`. In the last two
passes pytest-xdist distributes the tests to processes with their own database and broker: two more than there are
processors on SQLite, because tests wait half of the time; one more on PostgreSQL, whose server needs a processor, too.
If you name a file or folder, the first pass is skipped. `python -m tests.slow` runs the tests that take long, start
whole installations or draw many random numbers, `make test-faults` those that kill servers, and `make test-agents`
those that run installed agents.
EVALHUB_TEST_REQUIRE=browser,postgres,redis,sandbox makes a missing program a failure instead of a skip.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.requirements import required
from tests.services.servers import NotHere, postgres, redis

ROOT = Path(__file__).resolve().parent.parent
PURE = ["-c", "tests/evaluators/tables.ini", "--rootdir", ".", "tests/evaluators", "-m", "table"]
SLOW = "slow or fault or simulation"
"""Left to `python -m tests.slow` and `make test-faults`."""
ELSEWHERE = f"{SLOW} or agents"
"""Left to them and to `make test-agents`."""
ON_EVERY_DATABASE = "(database or worker) and not browser and not own_servers and not agents"
SAME_ON_EVERY_DATABASE = (
    "tests/access",
    "tests/agentv",
    "tests/api/test_errors_api.py",
    "tests/api/test_grade_api.py",
    "tests/api/test_tokens_api.py",
    "tests/browser",
    "tests/commands/test_ci_examples.py",
    "tests/commands/test_commands.py",
    "tests/commands/test_compare_guidance.py",
    "tests/commands/test_console.py",
    "tests/commands/test_doctor.py",
    "tests/commands/test_eval_cases_on_the_command_line.py",
    "tests/commands/test_grade_command.py",
    "tests/commands/test_guidance_on_the_command_line.py",
    "tests/commands/test_import_sessions.py",
    "tests/commands/test_import_targets.py",
    "tests/commands/test_output.py",
    "tests/commands/test_output_files.py",
    "tests/commands/test_progress.py",
    "tests/commands/test_proof_commands.py",
    "tests/commands/test_retry_run.py",
    "tests/commands/test_session_kinds.py",
    "tests/commands/test_sources_on_the_command_line.py",
    "tests/commands/test_summary_file.py",
    "tests/commands/test_tool_descriptions.py",
    "tests/commands/test_try_pattern.py",
    "tests/commands/test_waiting.py",
    "tests/commands/test_wrong_options.py",
    "tests/conformance",
    "tests/containment/test_environment.py",
    "tests/containment/test_judging_files.py",
    "tests/containment/test_large_bodies.py",
    "tests/containment/test_planted_files.py",
    "tests/containment/test_strangers.py",
    "tests/containment/test_target_roots.py",
    "tests/docker",
    "tests/evaluators",
    "tests/operations/test_file_store.py",
    "tests/real_agents",
    "tests/runs/containment",
    "tests/runs/mcp",
    "tests/runs/model_server",
    "tests/runs/notifications/test_channels.py",
    "tests/runs/notifications/test_mail.py",
    "tests/runs/providers",
    "tests/runs/proving/test_cheating.py",
    "tests/runs/proving/test_scenario_proofs.py",
    "tests/runs/requests/test_as_command.py",
    "tests/runs/requests/test_estimating.py",
    "tests/runs/reviewing/test_assessing_again.py",
    "tests/runs/sources",
    "tests/runs/storage/test_importing_promptfoo.py",
    "tests/runs/storage/test_results_folders.py",
    "tests/runs/test_budget.py",
    "tests/runs/test_cache.py",
    "tests/runs/test_confirming.py",
    "tests/runs/test_deciding_options.py",
    "tests/runs/test_eval_cases_over_http.py",
    "tests/runs/test_execution.py",
    "tests/runs/test_execution_workspace.py",
    "tests/runs/test_exports.py",
    "tests/runs/test_preparation.py",
    "tests/runs/test_repricing.py",
    "tests/runs/test_tool_versions.py",
    "tests/runs/trials/test_agent_trials.py",
    "tests/runs/trials/test_asking.py",
    "tests/runs/trials/test_batching.py",
    "tests/runs/trials/test_batching_fallback.py",
    "tests/runs/trials/test_broken_sessions.py",
    "tests/runs/trials/test_cost_limits.py",
    "tests/runs/trials/test_judges.py",
    "tests/runs/trials/test_protected_files.py",
    "tests/runs/trials/test_routing.py",
    "tests/runs/trials/test_stub_mode.py",
    "tests/runs/trials/test_tampering.py",
    "tests/runs/trials/test_unusable_judge.py",
    "tests/web/new_run",
    "tests/web/runs/test_run_actions.py",
    "tests/web/runs/test_run_causes.py",
    "tests/web/runs/test_run_detail.py",
    "tests/web/runs/test_run_diagnosis.py",
    "tests/web/runs/test_run_failing_calls.py",
    "tests/web/runs/test_run_figures.py",
    "tests/web/runs/test_run_layers.py",
    "tests/web/runs/test_run_line.py",
    "tests/web/runs/test_run_looks.py",
    "tests/web/runs/test_run_progress.py",
    "tests/web/runs/test_run_scenarios.py",
    "tests/web/runs/test_run_subcommands.py",
    "tests/web/runs/test_run_tools.py",
    "tests/web/runs/test_run_variance.py",
    "tests/web/targets",
    "tests/web/test_access.py",
    "tests/web/test_baselines.py",
    "tests/web/test_compare.py",
    "tests/web/test_compare_matrix.py",
    "tests/web/test_compare_opened.py",
    "tests/web/test_csv.py",
    "tests/web/test_ends_pages.py",
    "tests/web/test_errors.py",
    "tests/web/test_guidance_texts.py",
    "tests/web/test_invitations.py",
    "tests/web/test_judge_review.py",
    "tests/web/test_more_trials.py",
    "tests/web/test_pattern_page.py",
    "tests/web/test_regression_queue.py",
    "tests/web/test_regressions.py",
    "tests/web/test_seals.py",
    "tests/web/test_session_pages.py",
    "tests/web/test_settings.py",
    "tests/web/test_sign_in.py",
    "tests/web/test_suite_editor.py",
    "tests/web/test_suite_versions.py",
    "tests/web/test_suites.py",
    "tests/web/test_uploads.py",
    "tests/web/trials",
    "tests/worker/test_file_stores.py",
    "tests/worker/test_interrupted_history.py",
    "tests/worker/test_proof_on_a_worker.py",
)
"""About programs, files, forms, commands, judging, most pages and who may do what, so SQLite's pass is enough:
other tests ask either database for what these read, and `tests/upgrade` opens every page on both."""
PROCESSORS = os.cpu_count() or 1
NOTHING_COLLECTED = 5
Environment = dict[str, str]


def names_files(arguments: list[str]) -> bool:
    """Return whether pytest's arguments name a file or folder."""
    return any((ROOT / word.partition("::")[0]).exists() for word in arguments if not word.startswith("-"))


def repeated(ids: Iterable[str]) -> list[str]:
    """Return the ids that several tests share, each once: pytest-xdist would run one of them and count no other."""
    return [each for each, number in Counter(ids).items() if number > 1]


def run(name: str, arguments: list[str], servers: Environment) -> int:
    """Run pytest and return its exit code; without servers on SQLite and the embedded broker."""
    print(f"\n*** {name}\n", flush=True)
    kept = {
        key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "EVALHUB_BROKER_URL")
    }
    code = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ROOT, env={**kept, **servers}, check=False
    ).returncode
    # A signal's number is negative, but not a success.
    return code if code >= 0 else 128 - code


def on_servers(arguments: list[str]) -> int:
    """Run the tests that use the database on PostgreSQL and Redis."""
    name = "PostgreSQL and Redis"
    try:
        with postgres() as database, redis() as broker:
            return run(name, arguments, {"DATABASE_URL": database, "EVALHUB_BROKER_URL": broker})
    except NotHere as error:
        print(f"\n*** {name}\n\nSKIPPED the whole pass: {error}", flush=True)
        return 1 if {"postgres", "redis"} & required() else 0


def spread(processes: int) -> list[str]:
    """Return pytest's arguments for so many processes: each takes tests from others when it has none left.

    Most files stay in one process, whose tests share expensive fixtures, but any two tests may run at the same time.
    """
    return ["-n", str(processes), "--dist", "worksteal"]


def passes(arguments: list[str]) -> Iterator[int]:
    """Run one pass after the other; yield their exit codes."""
    named = names_files(arguments)
    if not named:
        yield run("Pure parts by table", [*PURE, *arguments], {})
    rest = [] if named else ["-m", f"not table and not ({ELSEWHERE})"]
    yield run("SQLite and the embedded broker", [*spread(PROCESSORS + 2), *rest, *arguments], {})
    left_out = [f"--ignore={path}" for path in SAME_ON_EVERY_DATABASE]
    chosen = [*left_out, "-m", f"{ON_EVERY_DATABASE} and not ({SLOW})"]
    yield on_servers([*spread(PROCESSORS + 1), *chosen, *arguments])


def worst(codes: Iterable[int]) -> int:
    """Return the worst exit code; a pass without matching tests is fine if another pass has some."""
    return max({*codes} - {NOTHING_COLLECTED}, default=NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(worst(passes(sys.argv[1:])))
