"""The evidence that layers judge a trial by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from evaluators.model import Complete, Execution, Json, Transcript, Workspace
from evaluators.tool_use.interaction import Interaction, analyse
from evaluators.tool_use.recorded_calls import RecordedCall
from evaluators.tool_use.tool import Tool


@dataclass(frozen=True)
class Evidence(Execution):
    """Everything a layer may read. Workspace and model are injected."""

    transcript: Transcript
    workspace: Workspace | None = None
    """None if no command may run; gates that need one report *not run*."""
    bundle: Workspace | None = None
    """The uploaded files next to the scenario, separate from the workspace; None without any."""
    tool: Tool | None = None
    key: str = ""
    """The scenario's."""
    prompt: str = ""
    answer: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)
    complete: Complete | None = None
    model: str = ""
    """The model under test, for the warning about a judge that judges itself."""
    command_env: Mapping[str, str] = field(default_factory=dict)
    """The variables of judging commands: evalhub's own and the tool's, resolved."""
    seed: Json = None
    """The seed manifest for `{{seed:…}}` in expected values."""
    snapshot: Json = None
    """Data captured from live sources before the run, for `{{snapshot:…}}`."""
    count_tokens: Callable[[str], int] | None = None
    """A tokenizer of one's own for `maxTokens`; None counts characters / 4."""
    executes_tools: bool = True
    """False for a model that only names the tools it would call."""

    protected_changes: tuple[str, ...] = ()
    """Protected files that the agent changed, removed or added."""
    changed_files: tuple[str, ...] = ()
    """Paths of files in the workspace that the agent added, changed or removed, as far as they are known."""
    hides_skill: bool = False
    """Whether judges may not see if a skill was there, because trials with and without it are compared."""
    record: tuple[RecordedCall, ...] | None = None
    """The recorded executions of the tool; None if it was not recorded."""
    lost_calls: int = 0
    """Executions of the tool that could not be recorded."""

    @property
    def completed(self) -> bool:
        """Whether the agent's process exited with code 0 before the time limit."""
        return not self.timed_out and self.exit_code == 0

    @cached_property
    def interaction(self) -> Interaction:
        """The metrics of layer 1, computed once."""
        return analyse(
            self.transcript, self.tool, completed=self.completed, record=self.record, lost=self.lost_calls
        )
