"""`python -m evalhub` is `manage.py`."""

from evalhub.console import main

if __name__ == "__main__":
    main()
