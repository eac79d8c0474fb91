#!/usr/bin/env python
# PYTHON_ARGCOMPLETE_OK
"""evalhub's command line; `manage.py help` lists the commands."""

import sys
from pathlib import Path

WRONG_USE = 2

try:
    from evalhub.console import main
except ModuleNotFoundError as error:
    environment = Path(__file__).resolve().parent / ".venv"
    make = (
        ""
        if environment.exists()
        else f"Make evalhub's environment with 'make setup' in {environment.parent}. "
    )
    sys.exit(
        f"{sys.executable} has no package '{error.name}'. {make}"
        f"Run {environment / 'bin' / 'python'} {' '.join(sys.argv)}"
    )

if __name__ == "__main__":
    main()
