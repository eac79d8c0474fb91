"""What gunicorn does beside its command line: it reads this file from the working directory."""

import gc
from typing import Any


def when_ready(server: Any) -> None:
    """Freeze what `--preload` has loaded, so that web processes share it and no request collects it again."""
    gc.collect()
    gc.freeze()
