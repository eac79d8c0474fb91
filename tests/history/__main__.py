"""Fill a separate project with generated runs: `python -m tests.history --runs 100 --trials 20`.

Nothing in them was measured: never cite them.
"""

from __future__ import annotations

import argparse
import sys

from evalhub.startup import set_up


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.history")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100, help="trials per run")
    parser.add_argument("--project", default="demo-data", help="slug of the project (default: demo-data)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same history")
    asked = parser.parse_args()
    set_up()
    from tests.history.storing import make_history

    make_history(
        asked.project,
        runs=asked.runs,
        trials=asked.trials,
        seed=asked.seed,
        progress=lambda done: print(f"{done} of {asked.runs} runs", file=sys.stderr),
    )


if __name__ == "__main__":
    main()
