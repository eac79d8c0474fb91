"""What threads of a web process leave in memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

POOLS = """
import ctypes, sys, tempfile, threading
from evalhub.web.memory import use_one_pool

if sys.argv[1] == "one":
    use_one_pool()
libc = ctypes.CDLL(None)
if not hasattr(libc, "malloc_info"):
    sys.exit("no malloc_info")
libc.malloc.restype = libc.fdopen.restype = ctypes.c_void_p
together = threading.Barrier(8)


def work():
    together.wait()
    for _ in range(2000):
        libc.free(ctypes.c_void_p(libc.malloc(4096)))
    together.wait()


threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(file.fileno(), b"w"))
    libc.malloc_info(0, stream)
    libc.fflush(stream)
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


def pools(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", POOLS, how], capture_output=True, text=True, check=False)
    if "no malloc_info" in done.stderr:
        pytest.skip("This C library does not tell of its pools.")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_threads_share_one_pool_of_memory():
    assert pools("several") > 1
    assert pools("one") == 1
