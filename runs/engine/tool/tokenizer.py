"""A tokenizer of one's own, from an installed package (tool-forge eval runner, maxTokens)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points

from django.conf import settings

from runs.errors import ProviderError

GROUP = "evalhub.tokenizers"
"""Entry points that are functions from a text to its number of tokens."""


def chosen_tokenizer() -> Callable[[str], int] | None:
    """Return the tokenizer that EVALHUB_TOKENIZER names; None without one. Raises `ProviderError` if it is missing."""
    return _tokenizer(settings.TOKENIZER) if settings.TOKENIZER else None


@cache
def _tokenizer(name: str) -> Callable[[str], int]:
    try:
        (entry,) = entry_points(group=GROUP, name=name)
        count = entry.load()
    except (ValueError, ImportError, AttributeError) as error:
        raise ProviderError(
            f"The tokenizer '{name}' of EVALHUB_TOKENIZER can't be loaded: {error}. Install a package on the worker "
            f"with an entry point of this name in the group {GROUP}.",
            kind="configuration",
        ) from error

    def counted(text: str) -> int:
        try:
            return int(count(text))
        except Exception as error:
            # Broad because it is not our code.
            raise ProviderError(
                f"The tokenizer '{name}' failed: {error}. Fix it.", kind="configuration"
            ) from error

    return counted
