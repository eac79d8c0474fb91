"""The opencode command line."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from typing import Any

from pydantic import AliasChoices, Field

from evaluators.transcripts.endings import failure_in_opencode_log
from runs.errors import ProviderError
from runs.sandbox.safe_paths import write_next_to_workspace
from runs.sandbox.sandbox import Containment, Sandbox
from runs.targets.agents.agent_program import AgentFacts, AgentOptions, AgentProgram
from runs.targets.agents.agent_session import prompt_of, run_session
from runs.targets.agents.session_agents import make_home, opencode_log, opencode_sessions
from runs.targets.agents.session_end import has_answered
from runs.targets.providers.base import Availability, Invocation, McpEndpoint, Recording
from runs.targets.providers.options import ResolvedTarget

DATA = "opencode-data"
"""opencode's folder for sessions, beside the workspace: it outlives the sandbox."""
RIPGREP = "rg"
WITHOUT_RIPGREP = (
    "loads skills with ripgrep, and there is no `rg` on the worker's PATH: each session would download it. "
    "Install it there, on Debian with `apt-get install ripgrep`."
)
COMMAND = ("run", "--format", "json")
FACTS = AgentFacts("opencode-ai", oldest=(1, 0), newest_major=1)
KEY = "EVALHUB_AGENT_KEY"
INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""Where opencode finds instructions; the first one that exists counts."""
SETTINGS = ("opencode.json", "opencode.jsonc", ".opencode")
UNNAMED = "evalhub"
"""The provider of an address where the model names none."""
NO_MODELS = "opencode-models.json"
"""The file, beside the workspace, of an empty list of models."""


class OpencodeOptions(AgentOptions):
    """How opencode is started."""

    executable: str = Field(
        default="opencode", min_length=1, validation_alias=AliasChoices("executable", "command", "binary")
    )


class Opencode:
    """Runs each prompt in a session of opencode in the trial's workspace."""

    works_in_folder = True

    def __init__(self, target: ResolvedTarget, containment: Containment) -> None:
        if not isinstance(target.options, OpencodeOptions):
            raise TypeError(f"{target.name} isn't an opencode target")
        self._name = target.name
        self._options = target.options
        self._program = AgentProgram("opencode", self._options.executable, target, containment, FACTS)

    def check(self) -> Availability:
        """Return whether opencode is installed and may start, and what it needs for skills."""
        availability = self._program.check()
        if not availability.available or shutil.which(RIPGREP, path=self._program.containment.path):
            return availability
        return replace(availability, sentence=f"{self._program.about} {WITHOUT_RIPGREP}")

    def invoke(self, invocation: Invocation) -> Recording:
        """Run a session. Raises `ProviderError` if it can't start or, without a workspace, gives no answer."""
        model = self._model(invocation)
        sandbox = self._program.sandbox(invocation, invocation.workspace)
        prompt = prompt_of(invocation, sandbox)
        env = self._env(model, _instructions(invocation, sandbox), invocation.mcp)
        if model.startswith(f"{UNNAMED}/"):
            # opencode's own list doesn't contain these models and takes a second to read.
            write_next_to_workspace(invocation.scratch, NO_MODELS, b"{}", "The list of models")
            env["OPENCODE_MODELS_PATH"] = sandbox.inside(invocation.scratch / NO_MODELS)
        env["XDG_DATA_HOME"] = sandbox.inside(make_home(invocation.scratch, DATA))
        env |= self._options.env
        return run_session(
            self._program,
            [*COMMAND, *(["--model", model] if model else []), *self._options.args, prompt],
            invocation,
            sandbox,
            parser="opencode",
            cwd=invocation.workspace,
            env=env,
            log=self._program.log(invocation),
            sessions=lambda recording: opencode_sessions(
                recording.raw,
                self._program,
                invocation,
                sandbox,
                env,
                with_main=recording.was_cut or not has_answered(recording),
            ),
            repeating=lambda recording: failure_in_opencode_log(opencode_log(invocation.scratch / DATA)),
        )

    def _model(self, invocation: Invocation) -> str:
        """Return the model as opencode names it. Raises `ProviderError` if a key or an address has none to go with."""
        model = invocation.model or self._options.model or ""
        if not (self._options.base_url or self._options.api_key):
            return model
        if not model or ("/" not in model and not self._options.base_url):
            raise ProviderError(
                f"The target '{self._name}' needs a model with its provider for its key or address, such as "
                "`model: anthropic/claude-sonnet-4-5`. Add it to the target, or to the run.",
                kind="configuration",
            )
        return model if "/" in model else f"{UNNAMED}/{model}"

    def _env(self, model: str, instructions: list[str] | None, mcp: McpEndpoint | None) -> dict[str, str]:
        """Return the configuration: everything is allowed, because evalhub contains it; nothing is shared.

        `instructions` replace those that opencode would find itself.
        """
        options = self._options
        config: dict[str, Any] = {"permission": {"*": "allow"}, "share": "disabled", "autoupdate": False}
        env = {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
        if mcp:
            how = {"type": "local", "command": list(mcp.command)}
            config["mcp"] = {mcp.name: how if mcp.command else {"type": "remote", "url": mcp.url}}
        if instructions is not None:
            config["instructions"] = instructions
            env["OPENCODE_DISABLE_PROJECT_CONFIG"] = "1"
        if options.base_url or options.api_key:
            config["provider"] = dict([self._service(*model.split("/", 1))])
        if options.base_url:
            # Its list of models and prices is not needed there, and may be out of reach.
            env["OPENCODE_DISABLE_MODELS_FETCH"] = "1"
        if options.api_key:
            env[KEY] = options.api_key
        return {**env, "OPENCODE_CONFIG_CONTENT": json.dumps(config)}

    def _service(self, provider: str, model: str) -> tuple[str, dict[str, Any]]:
        options = self._options
        settings = {"apiKey": f"{{env:{KEY}}}"} if options.api_key else {"apiKey": "none"}
        if not options.base_url:
            return provider, {"options": settings}
        # Providers that opencode asks in their own protocol; any other address is a Chat Completions one.
        package = (
            {} if provider in ("openai", "anthropic", "google") else {"npm": "@ai-sdk/openai-compatible"}
        )
        settings["baseURL"] = options.base_url
        return provider, {**package, "options": settings, "models": {model: {}}}


def _instructions(invocation: Invocation, sandbox: Sandbox) -> list[str] | None:
    """Return the workspace's instructions where folders above it have some that opencode would read too, else None."""
    workspace = invocation.workspace
    if sandbox.inside(workspace) != str(workspace):
        return None
    above = [folder / name for folder in workspace.parents for name in (*INSTRUCTIONS, *SETTINGS)]
    if not any(os.access(path, os.R_OK) for path in above):
        return None
    return [str(workspace / name) for name in INSTRUCTIONS if (workspace / name).exists()][:1]
