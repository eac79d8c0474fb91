"""What is known of a trial when it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from evaluators.interaction import Interaction, analyse
from evaluators.model import Complete, Json, Transcript, Usage, Workspace
from evaluators.tool import Tool


@dataclass(frozen=True)
class Evidence:
    """Everything a layer may look at. The world behind it is injected: a workspace and a model to ask."""

    transcript: Transcript
    workspace: Workspace | None = None
    """None where no command may run: gates that need one are then *not run*."""
    bundle: Workspace | None = None
    """The files that came with the scenario, apart from the workspace; None where it names none."""
    tool: Tool | None = None
    prompt: str = ""
    answer: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    usage: Usage | None = None
    complete: Complete | None = None
    model: str = ""
    """The model under test, so that a judge that is the same one can be named."""
    script_env: Mapping[str, str] = field(default_factory=dict)
    """The `LLM_TOOL_TEST_*` names, for every command that runs in the workspace."""
    seed: Json = None
    """The seed manifest, for `{{seed:…}}` in expected values; None where there is none."""
    snapshot: Json = None
    """What was captured from live sources before the run, for `{{snapshot:…}}`."""
    executes_tools: bool = True
    """False for a model that only says which tools it would call."""

    @property
    def completed(self) -> bool:
        """Whether the agent's process ended by itself with exit code 0."""
        return not self.timed_out and self.exit_code == 0

    @property
    def command_env(self) -> dict[str, str]:
        """The environment of every command that judges: `script_env`, then the tool's own over it."""
        return {**self.script_env, **(self.tool.env if self.tool else {})}

    @cached_property
    def interaction(self) -> Interaction:
        """Layer 1, computed once for the gate and the layer that both need it."""
        return analyse(self.transcript, self.tool, completed=self.completed)
