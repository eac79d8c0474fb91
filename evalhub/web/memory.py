"""How a web process takes memory from the system."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""Of `malloc.h` (glibc, mallopt(3))."""


def use_one_pool() -> None:
    """Let all threads of this process take memory from one pool, where its C library has several.

    Threads that wait for Python's lock anyway gain nothing by pools of their own, and each keeps what was freed in it:
    three to four megabytes in a web process of eight threads.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
