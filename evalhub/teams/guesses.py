"""Whose a secret was when it was last read: a guess, for what is asked of the database together with it."""

from __future__ import annotations

MOST_REMEMBERED = 1000


class Guesses:
    """Keys of rows by a secret or its digest. What counts is what the database says of the secret itself."""

    def __init__(self) -> None:
        self._keys: dict[str, int] = {}

    def get(self, secret: str) -> int | None:
        """Return the key that the secret led to, None where it was not seen lately."""
        return self._keys.get(secret)

    def remember(self, secret: str, key: int) -> None:
        """Keep the key of a secret; of too many all are forgotten, for a guess costs one trip at most."""
        if len(self._keys) >= MOST_REMEMBERED:
            self._keys.clear()
        self._keys[secret] = key
