"""The one place where a trial's task is put to its target."""

from __future__ import annotations

from evaluators.stub_loop import MAX_TURNS
from runs.errors import ProviderError
from runs.providers.base import Invocation, Recording
from runs.trials.offered_tools import tools_of
from runs.trials.task import Task


def ask(task: Task, invocation: Invocation) -> Recording:
    """Return what the target brought back. Raises `ProviderError` where it could not do the task.

    An eval case that takes too long fails (tool-forge eval runner, timeoutMs), whatever target it is on.
    """
    try:
        return _asked(task, invocation)
    except ProviderError as error:
        if error.kind != "timeout" or task.criteria.expect is None:
            raise
        return Recording(timed_out=True, seconds=task.timeout_seconds, notes=(str(error),))


def _asked(task: Task, invocation: Invocation) -> Recording:
    """Let a model with stubs converse over them, and any other target do the task."""
    if invocation.stubs is None or task.executes_tools:
        return task.context.provider.invoke(invocation)
    # Imported here, for few trials converse, and a model's code is long to load.
    from runs.providers.language_model import stub_model
    from runs.trials.stub_mode import converse

    tools = tools_of(task.context.registry, invocation.stubs)
    model = stub_model(task.context.target, tools, invocation, task.context.outbound)
    return converse(invocation, model, max_turns=task.spec.limits.max_turns or MAX_TURNS)
