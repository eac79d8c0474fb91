"""Use a `cli` target as a judge: prompt on standard input, answer on standard output."""

from __future__ import annotations

from evaluators.model import Complete, Completion, CompletionError, CompletionRequest
from runs.errors import ProviderError
from runs.sandbox.process import ProcessResult, run_process
from runs.sandbox.profiles import AGENT
from runs.sandbox.safe_paths import write_beneath
from runs.sandbox.safe_walk import temporary_folders
from runs.sandbox.sandbox import Containment
from runs.targets.agents.cli import CliOptions
from runs.targets.agents.cli_answer import parse_answer
from runs.targets.agents.command_template import TemplateValues, render
from runs.targets.providers.options import ResolvedTarget

DEFAULT_SECONDS = 120.0


def complete_through_command(target: ResolvedTarget, containment: Containment) -> Complete:
    """Return a command as a model. `{PROMPT}` in its template is filled in too."""
    options = target.options
    if not isinstance(options, CliOptions):
        raise TypeError(f"{target.name} isn't a cli target")

    def complete(request: CompletionRequest) -> Completion:
        try:
            result = _run(options, containment, request, target.base_folder)
        except ProviderError as error:
            raise CompletionError(str(error)) from error
        if result.exit_code != 0 or result.error:
            raise CompletionError(_failure(target.name, result))
        text = parse_answer(result.stdout.decode("utf-8", "replace")).text
        return Completion(text=text or "", model=options.model or target.name, seconds=result.seconds)

    return complete


def _run(
    options: CliOptions, containment: Containment, request: CompletionRequest, base: str
) -> ProcessResult:
    prompt = f"{request.system}\n\n{request.user}" if request.system else request.user
    with temporary_folders("evalhub-judge-") as (workspace, scratch):
        cwd = containment.working_folder(options.cwd, workspace, base=base)
        sandbox = containment.around(
            workspace, scratch, profile=AGENT, working=None if cwd.is_relative_to(workspace) else cwd
        )
        file = scratch / "prompt.txt"
        write_beneath(scratch, file.name, prompt.encode())
        values = TemplateValues(prompt=prompt, prompt_file=sandbox.inside(file), eval_id="judge")
        return run_process(
            render(options.command_template, values),
            cwd=cwd,
            env=options.env,
            stdin=prompt.encode(),
            timeout_seconds=options.timeout_seconds or DEFAULT_SECONDS,
            limits=sandbox.limits,
            sandbox=sandbox,
        )


def _failure(name: str, result: ProcessResult) -> str:
    output = (result.stderr or result.stdout).decode("utf-8", "replace").strip()[-500:].rstrip(".")
    ended = result.error.rstrip(".") or f"it ended with exit code {result.exit_code}"
    return f"The judge '{name}' did not answer: {ended}. Output: {output or 'none'}. Run its command by hand."
