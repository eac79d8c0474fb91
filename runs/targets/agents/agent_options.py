"""Options that every coding agent shares, and what evalhub knows of the programs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from evaluators.transcripts.stream import VERSION, newer_version
from runs.sandbox.target_roots import Use
from runs.targets.providers.options import RETRY_FIELDS, Options

_CREDENTIAL = re.compile(r"(KEY|TOKEN|AUTH|CREDENTIALS?|_USE_[A-Z]+)(_|$)")


@dataclass(frozen=True)
class AgentFacts:
    """What evalhub knows of an agent's program."""

    package: str
    """Its package in npm."""
    oldest: tuple[int, int]
    """The first version whose stream evalhub reads."""
    newest_major: int
    """The last major version whose stream is known."""
    variable: str = ""
    """The variable of its key; empty if it works without one."""

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"npm install -g {self.package}"

    def too_old(self, version: str) -> bool:
        """Return whether its stream can't be read; an unreadable version is not too old."""
        match = VERSION.search(version)
        return match is not None and (int(match[1]), int(match[2])) < self.oldest

    def note(self, title: str, version: str) -> str:
        """Return a note on a major version that is not known yet; empty for a known one."""
        return newer_version(title, version, self.newest_major)


class AgentOptions(Options):
    """How a coding agent is started, and which model service it uses."""

    unused_fields: ClassVar[frozenset[str]] = RETRY_FIELDS
    secret_fields: ClassVar[frozenset[str]] = frozenset(("api_key",))
    path_fields: ClassVar[Mapping[str, Use]] = {"executable": Use.RUN}

    api_key: str | None = None

    @property
    def names_credentials(self) -> bool:
        """Whether the agent can sign in: by a key, by a variable for one, or at an address that needs none."""
        return bool(self.api_key or self.base_url) or any(map(_CREDENTIAL.search, self.env))

    def sets(self, words: Collection[str]) -> bool:
        """Return whether one of its own arguments is one of these or sets one, as in `--sandbox=MODE`."""
        return any(arg in words or arg.partition("=")[0] in words for arg in self.args)
