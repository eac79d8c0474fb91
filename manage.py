#!/usr/bin/env python
"""Everything evalhub does from the command line; `manage.py help` lists it."""

import gc
import os
import sys

YOUNG_OBJECTS = 50_000
WRONG_USE = 2
"""As of every command; a wrong setting must not look like a run that failed."""


def main() -> None:
    # Half a million objects of modules come and stay: looking through them every 700 takes a sixth of the start.
    gc.set_threshold(YOUNG_OBJECTS, 20, 100)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(WRONG_USE)
    finally:
        # All of it goes with the process, and need not be looked through once more.
        gc.freeze()


if __name__ == "__main__":
    main()
