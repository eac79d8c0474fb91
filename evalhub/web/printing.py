"""What a command prints, also where nobody reads it to its end."""

from __future__ import annotations

import os

from django.core.management.base import OutputWrapper


class NotPrinted(Exception):
    """What a command found out could not be printed; the message says why."""


def tell(stream: OutputWrapper, text: str) -> None:
    """Print a text to its end; a reader who leaves early, such as `head`, has what it wants. Raises `NotPrinted`."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _let_go(stream)
    except OSError as error:
        _let_go(stream)
        raise NotPrinted(f"The output cannot be written: {error.strerror}. Send it elsewhere.") from error


def _let_go(stream: OutputWrapper) -> None:
    """Let what is left go nowhere: Python would try to print it once more at its end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
