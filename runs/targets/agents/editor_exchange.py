"""Exchange requests and answers with an agent in an editor, one file each."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from evalhub.lib.limits import LARGEST_FILE, LARGEST_MESSAGE
from evaluators.model import Json
from runs.errors import ProviderError
from runs.sandbox.safe_paths import exists_beneath, make_folder_beneath, read_beneath, write_beneath
from runs.sandbox.target_roots import AllowedPath
from runs.targets.providers.preread import markdown_link

LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Exchange:
    """A request and the path of its answer; the agent writes `partial` and renames it when it is done."""

    root: Path
    """Chosen by the worker; the agent may have made what is inside."""
    folder: str
    name: str

    @classmethod
    def new(cls, root: Path, folder: str) -> Exchange:
        """Create a folder beneath `root` and return an exchange with fresh names in it. Raises `ProviderError`."""
        try:
            make_folder_beneath(root, folder)
        except OSError as error:
            raise _no_place(root / folder, error) from error
        return cls(root, folder, f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid4().hex[:8]}")

    @property
    def request(self) -> Path:
        """The request's document."""
        return self.root / self.folder / f"{self.name}_req.md"

    @property
    def workspace_file(self) -> Path:
        """The workspace file that the editor opens first."""
        return self.root / self.folder / f"{self.name}_req.code-workspace"

    @property
    def partial(self) -> Path:
        """Where the agent writes its answer."""
        return self.root / self.folder / f"{self.name}_res.tmp.md"

    @property
    def response(self) -> Path:
        """Where the complete answer is."""
        return self.root / self.folder / f"{self.name}_res.md"

    def write(self, path: Path, text: str) -> None:
        """Write a new file of the exchange. Raises `ProviderError`."""
        try:
            write_beneath(self.root, self._beneath(path), text.encode("utf-8", "replace"))
        except OSError as error:
            raise _no_place(path, error) from error

    @property
    def answered(self) -> bool:
        """Whether a file, or anything else, has the answer's name."""
        try:
            return exists_beneath(self.root, self._beneath(self.response))
        except OSError:
            # A link out of the folder or in a circle: reading it raises the error.
            return True

    def answer(self) -> bytes:
        """Return the answer. Raises `ProviderError` if it can't be read."""
        try:
            return read_beneath(self.root, self._beneath(self.response), limit=LARGEST_MESSAGE)
        except OSError as error:
            raise ProviderError(
                f"The agent's answer at {self.response} cannot be read: {error.strerror}. "
                "Let it write a plain file.",
                kind="command",
            ) from error

    def _beneath(self, path: Path) -> str:
        return f"{self.folder}/{path.name}"

    def wait(self, seconds: float, cancelled: Callable[[], bool]) -> bool:
        """Wait for the answer; return False on timeout or cancellation."""
        end = time.monotonic() + seconds
        while not self.answered:
            if cancelled() or time.monotonic() >= end:
                return False
            time.sleep(LOOK_SECONDS)
        return True


def made_root(path: Path) -> Path:
    """Return the absolute path of a folder for exchanges, created if missing. Raises `ProviderError`."""
    root = path.absolute()
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _no_place(root, error) from error
    return root


def _no_place(path: Path, error: OSError) -> ProviderError:
    return ProviderError(
        f"The request to the agent cannot be written to {path}: {error.strerror}. "
        "Let the setup commands leave that name free, or correct `subagent_root`.",
        kind="setup",
    )


def request_text(prompt: str, exchange: Exchange, inside: Callable[[Path], str]) -> str:
    """Return the document of a request; `inside` maps paths to those that the agent sees."""
    partial, response = inside(exchange.partial), inside(exchange.response)
    return (
        f"[[ ## task ## ]]\n\n{prompt}\n\n[[ ## system_instructions ## ]]\n\n"
        f"Put your whole answer into the file {partial}. When it is complete, and not before, "
        f"rename that file to {response}. Nothing else is read of what you say.\n"
    )


def batch_text(exchanges: Sequence[Exchange], inside: Callable[[Path], str]) -> str:
    """Return the document that contains many requests."""
    listed = "\n".join(f"* {markdown_link(inside(exchange.request))}" for exchange in exchanges)
    return (
        "[[ ## task ## ]]\n\n"
        "Carry out each of these requests by a subagent of its own, which reads nothing of the others:\n"
        f"{listed}\n\n[[ ## system_instructions ## ]]\n\n"
        "Each request says where its answer belongs. You are done when every answer is there.\n"
    )


def workspace_text(template: AllowedPath | None, folder: str) -> str:
    """Return a workspace file for a folder, with the settings and further folders of a template.

    Raises `ProviderError` (kind `configuration`) where the template is not JSON.
    """
    workspace = _template(template) if template else {}
    others = workspace.get("folders")
    further = (
        [_absolute(each, template.path) for each in others] if isinstance(others, list) and template else []
    )
    return json.dumps({**workspace, "folders": [{"path": folder}, *further]}, indent=2)


def _template(place: AllowedPath) -> dict[str, Json]:
    try:
        value = json.loads(place.read(limit=LARGEST_FILE))
    except (OSError, ValueError) as error:
        raise ProviderError(
            f"The workspace template {place.path} cannot be used: {error}. Give `workspace_template` a file of JSON.",
            kind="configuration",
        ) from error
    return value if isinstance(value, dict) else {}


def _absolute(folder: Json, template: Path) -> Json:
    if not isinstance(folder, dict) or not isinstance(folder.get("path"), str):
        return folder
    return {**folder, "path": str(template.parent / folder["path"])}
