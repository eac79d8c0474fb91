"""evalhub's settings for tests: a data directory of their own; the database is all that differs between two passes."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_DATA = tempfile.mkdtemp(prefix="evalhub-tests-")
atexit.register(shutil.rmtree, _DATA, ignore_errors=True)
os.environ["EVALHUB_DATA"] = _DATA
os.environ["EVALHUB_SECRET_KEY"] = "a-secret-of-the-tests-that-is-long-enough-for-everybody"
os.environ.setdefault("EVALHUB_SANDBOX", "prefer")
# Where tests have their targets' programs, recordings and logs.
_ROOTS = (
    f"{tempfile.gettempdir()}:rw",
    str(Path(__file__).parents[1]),
    os.environ.get("EVALHUB_TEST_AGENTS", ""),
)
os.environ["EVALHUB_TARGET_ROOTS"] = ",".join(filter(None, _ROOTS))
# Processes that share a Redis have a database of it each; PostgreSQL's are pytest-django's business.
_process = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
if os.environ.get("EVALHUB_BROKER_URL", "").endswith("?virtual_host=0"):
    os.environ["EVALHUB_BROKER_URL"] = os.environ["EVALHUB_BROKER_URL"].removesuffix("0") + _process
for _name in ("EVALHUB_HOSTS", "EVALHUB_ENV_ALLOW", "LLM_TOOL_TEST_JUDGE"):
    os.environ.pop(_name, None)

# The environment comes first.
from evalhub.settings import *  # noqa: E402, F403
from evalhub.settings import DATABASES, INSTALLED_APPS  # noqa: E402

# Tests of a server for many say so themselves.
EMBEDDED = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = False
INSTALLED_APPS = [*INSTALLED_APPS, "tests.emptying"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, for threads cannot share a database in memory.
    DATABASES["default"]["TEST"] = {"NAME": f"{_DATA}/test.sqlite3"}

# To compress Plotly's script takes every process with a browser a second.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ("css", "js", "svg")
