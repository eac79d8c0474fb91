"""Two runs whose failing trials begin with another command than the passing ones."""

from __future__ import annotations

from runs.models import Run, Trial
from scenarios.models import SuiteVersion
from tests.builders import close, make_run, make_trial
from tests.shell_events import shell
from tests.trial_parts import make_command, make_transcript

GOOD = (("todo list --json", "list"), ("todo deploy --env test", "deploy"))
BAD = (("todo list --json", "list"), ("todo deploy --target test", "deploy"), ("todo help deploy", "help"))
ALIKE = "In 2 of 3 newly failing scenarios the first different command is `deploy --target`."


def run_commands(trial: Trial, commands: tuple[tuple[str, str], ...], code: int = 0) -> Trial:
    """Store a trial's transcript and its commands of the tool."""
    make_transcript(
        trial, [event for n, (line, _) in enumerate(commands) for event in shell(line, "", code, n)]
    )
    for n, (line, subcommand) in enumerate(commands):
        make_command(trial, n, line, subcommand=subcommand, exit_code=code, event=2 * n)
    return trial


def diverging_runs(version: SuiteVersion) -> tuple[Run, Run]:
    """Return two closed runs of `create`, `export` and `list`: two fail by one command, one has no known command."""
    base, new = make_run(version), make_run(version)
    for key in ("create", "export"):
        run_commands(make_trial(base, key, answer="Deployed."), GOOD)
        run_commands(make_trial(new, key, outcome="fail", answer="Could not deploy."), BAD, 2)
    make_trial(base, "list")
    make_trial(new, "list", outcome="fail")
    return close(base), close(new)
