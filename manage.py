#!/usr/bin/env python
"""Everything evalhub does from the command line; `manage.py help` lists it."""

import gc
import os
import sys
from pathlib import Path
from select import POLLERR, poll
from typing import TextIO

YOUNG_OBJECTS = 50_000
WRONG_USE = 2
"""As of every command; a wrong setting must not look like a run that failed."""
INTERRUPTED = 130
"""As shells tell of Ctrl-C."""


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w")


def _has_no_reader(stream: TextIO) -> bool:
    """Tell whether whoever read an output has left, as `head` does when it has what it wants."""
    ended = poll()
    ended.register(stream, POLLERR)
    return bool(ended.poll(0))


def main() -> None:
    # Half a million objects of modules come and stay: looking through them every 700 takes a sixth of the start.
    gc.set_threshold(YOUNG_OBJECTS, 20, 100)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    # Where an output is closed (>&-) Python has none at all.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # Evalhub's own commands see to it themselves, Django's do not.
        if not _has_no_reader(sys.stdout):
            raise
        with _nowhere() as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_USE)
    finally:
        # All of it goes with the process, and need not be looked through once more.
        gc.freeze()


if __name__ == "__main__":
    main()
