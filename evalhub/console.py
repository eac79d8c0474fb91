"""The command line, `evalhub` or `manage.py`: Django's commands with plain endings."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from select import POLLERR, poll
from typing import TextIO

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

YOUNG_OBJECTS = 50_000
WRONG_USE = 2
"""Exit code for configuration errors; distinct from a failed run."""
INTERRUPTED = 130
"""The exit code of shells after Ctrl-C."""


def main() -> None:
    """Run the command that the arguments name."""
    # Half a million objects of modules stay until the end: searching them every 700 takes a sixth of the start.
    gc.set_threshold(YOUNG_OBJECTS, 20, 100)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    # Without an output (>&-) Python has no stream at all.
    sys.stdout = sys.stdout or _devnull()
    sys.stderr = sys.stderr or _devnull()
    try:
        if "_ARGCOMPLETE" in os.environ:
            from evalhub.completion import complete

            complete()
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Our own commands handle it, Django's don't.
        if not _has_no_reader(sys.stdout):
            raise
        with _devnull() as devnull:
            os.dup2(devnull.fileno(), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_USE)
    finally:
        # The process ends, so nothing needs to be collected once more.
        gc.freeze()


def _devnull() -> TextIO:
    return Path(os.devnull).open("w")


def _has_no_reader(stream: TextIO) -> bool:
    """Return whether the reader of a pipe has closed it, as `head` does."""
    closed = poll()
    closed.register(stream, POLLERR)
    return bool(closed.poll(0))
