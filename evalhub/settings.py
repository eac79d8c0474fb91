"""One file of settings, driven by the environment; docs/operations.md lists every name.

Without any of them evalhub runs embedded: SQLite, an embedded broker, a single local owner, loopback only.
"""

import os
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF, UNSAFE_INLINE

from evalhub import environment
from evalhub.broker_address import BrokerAddress
from evalhub.version import read_version

BASE_DIR = Path(__file__).resolve().parent.parent
_packaged = Path(__file__).resolve().parent / "assets"
INSTALLED = _packaged.is_dir()
"""Whether evalhub is an installed package, not a clone."""
ASSETS = _packaged if INSTALLED else BASE_DIR
"""The folder of templates, static files, gunicorn.conf.py and CHANGELOG.md; a wheel has them in the package."""
DATA_DIR = Path(
    environment.read_text("EVALHUB_DATA", str(environment.user_data() if INSTALLED else BASE_DIR / "var"))
).resolve()
environment.make_directory("EVALHUB_DATA", DATA_DIR)

DATABASE_URL = environment.read_text("DATABASE_URL")
BROKER_URL = environment.read_text("EVALHUB_BROKER_URL")
BROKER_OPTIONS: dict[str, Any] = {
    "master": environment.read_text("EVALHUB_BROKER_MASTER"),
    "ca": environment.readable_file("EVALHUB_BROKER_CA"),
    "certificate": environment.readable_file("EVALHUB_BROKER_CERTIFICATE"),
    "key": environment.readable_file("EVALHUB_BROKER_KEY"),
}
if BROKER_URL:
    BrokerAddress(BROKER_URL, **BROKER_OPTIONS).check()
EVALHUB_HOSTS = environment.read_words("EVALHUB_HOSTS")

EMBEDDED = not BROKER_URL and not EVALHUB_HOSTS and DATABASE_URL.split(":")[0] in ("", "sqlite")
"""One machine, one owner, loopback only. Decides defaults, never what the code does."""

SECRET_KEY = (
    environment.kept_secret("EVALHUB_SECRET_KEY", DATA_DIR / "secret_key")
    if EMBEDDED
    else environment.read_text("EVALHUB_SECRET_KEY")
)
DEBUG = environment.read_choice("EVALHUB_DEBUG", "no", ("yes", "no")) == "yes"
ALLOWED_HOSTS = EVALHUB_HOSTS or ["localhost", "127.0.0.1"]
VERSION = read_version(ASSETS / "CHANGELOG.md")

DATABASES = {
    "default": environment.parse_database_url(DATABASE_URL or f"sqlite:///{DATA_DIR / 'evalhub.sqlite3'}")
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "evalhub.web",
    "evalhub.teams",
    "scenarios",
    "runs",
]

MIDDLEWARE = [
    "evalhub.web.middleware.ApiErrors",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "evalhub.web.middleware.BrowserPolicies",
    "evalhub.web.middleware.ReadableAddress",
    "evalhub.web.middleware.WrongMethod",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "evalhub.web.middleware.BodyLimits",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "evalhub.web.middleware.SignInRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "evalhub.urls"
WSGI_APPLICATION = "evalhub.wsgi.application"
CELERY_APP = "evalhub.celery.app"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [ASSETS / "templates"],
        "OPTIONS": {
            "environment": "evalhub.template_engine.environment",
            "context_processors": [
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "evalhub.web.middleware.page",
            ],
        },
    }
]
# Fields are drawn by compiled templates, too, in half of the time.
FORM_RENDERER = "django.forms.renderers.Jinja2"

AUTHENTICATION_BACKENDS = ["evalhub.teams.access.Users"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "sign-in"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
# Served over TLS everywhere but on loopback.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not EMBEDDED
TRUSTED_PROXIES = environment.read_networks(
    "EVALHUB_TRUSTED_PROXIES", environment.read_words("EVALHUB_TRUSTED_PROXIES")
)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = environment.read_choice("EVALHUB_SSL_REDIRECT", "no", ("yes", "no")) == "yes"
# Health checks and monitoring on the machine itself come without TLS.
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^metrics$"]
SECURE_HSTS_SECONDS = environment.read_integer("EVALHUB_HSTS_SECONDS", 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_SECONDS > 0
# HSTS preload affects the whole domain, so it isn't ours to set.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "evalhub.web.middleware.form_expired"
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in EVALHUB_HOSTS if host != "*"]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        # Hash of the map stylesheet that Plotly's script adds when it loads; a browser test prints a new one.
        "style-src": [SELF, "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='"],
        # Plotly sets style attributes on its SVG.
        "style-src-attr": [UNSAFE_INLINE],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
# A container brings its files collected, on a file system that is not written to.
STATIC_ROOT = Path(environment.read_text("EVALHUB_STATIC", str(DATA_DIR / "static")))
STATICFILES_DIRS = [ASSETS / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "artifacts": environment.file_store("EVALHUB_STORE"),
    "staticfiles": {"BACKEND": "evalhub.web.static_storage.StaticStorage"},
}
# Each file is kept under its hashed name only.
WHITENOISE_KEEP_ONLY_HASHED_FILES = True
# The largest bundle; each format has a tighter limit.
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# As many as a bundle may have: a folder is uploaded file by file.
DATA_UPLOAD_MAX_NUMBER_FILES = 5_000

ARTIFACTS_DIR = DATA_DIR / "artifacts"
WORK_DIR = DATA_DIR / "work"
SYSTEM_FILES_DIR = DATA_DIR / "etc"
SANDBOX = environment.read_choice(
    "EVALHUB_SANDBOX", "prefer" if EMBEDDED else "require", ("require", "prefer", "off")
)
SANDBOX_READ = [path for path in environment.read_text("EVALHUB_SANDBOX_READ").split(os.pathsep) if path]
EGRESS = environment.read_choice(
    "EVALHUB_EGRESS", "full" if EMBEDDED else "internet", ("none", "internet", "full")
)
EGRESS_ALLOW = environment.read_words("EVALHUB_EGRESS_ALLOW")
EGRESS_UNENFORCED = environment.read_choice("EVALHUB_EGRESS_UNENFORCED", "0", ("0", "1")) == "1"
MAX_PROCESSES = environment.read_integer("EVALHUB_MAX_PROCESSES", 512)
MAX_MEMORY_MB = environment.read_integer("EVALHUB_MAX_MEMORY_MB", 4096)
# 0 is three quarters of what the machine has.
WORKER_MEMORY_MB = environment.read_integer("EVALHUB_WORKER_MEMORY_MB", 0)
TARGET_ROOTS = environment.read_roots("EVALHUB_TARGET_ROOTS") or ([str(Path.home())] if EMBEDDED else [])
ENV_ALLOW = environment.read_words("EVALHUB_ENV_ALLOW")
HTTP_ALLOW = environment.read_words("EVALHUB_HTTP_ALLOW")
WORKER_LABELS = environment.read_words("EVALHUB_WORKER_LABELS")
WORKER_THREADS = environment.read_integer("EVALHUB_WORKER_THREADS", 8)
# Celery's: two at least, so that preparations need not wait for a task that takes minutes.
TASK_THREADS = max(2, WORKER_THREADS)
PRELOAD = environment.read_words("EVALHUB_PRELOAD")
LEASE_SECONDS = environment.read_integer("EVALHUB_LEASE_SECONDS", 60)
LINE_DAYS = environment.read_integer("EVALHUB_LINE_DAYS", 30)
MIN_FREE_MB = environment.read_integer("EVALHUB_MIN_FREE_MB", 200)
METRICS_TOKEN = environment.read_text("EVALHUB_METRICS_TOKEN")
TOKENIZER = environment.read_text("EVALHUB_TOKENIZER")
OUTPUT_DIR = environment.read_text("EVALHUB_OUTPUT_DIR")
DEFAULT_JUDGE = environment.read_text("LLM_TOOL_TEST_JUDGE")

# A leading dot matches all subdomains and * any host, so neither can be linked to.
_named = [host for host in EVALHUB_HOSTS if host[0] not in ".*"]
PUBLIC_URL = environment.web_address(
    "EVALHUB_URL", f"https://{_named[0]}" if _named else "http://127.0.0.1:8000"
)
_mail = environment.mail_server("EVALHUB_EMAIL_URL")
MAIL_SERVER = bool(_mail)
EMAIL_HOST = _mail.get("EMAIL_HOST", "localhost")
EMAIL_PORT = _mail.get("EMAIL_PORT", 25)
EMAIL_HOST_USER = _mail.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = _mail.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_SSL = _mail.get("EMAIL_USE_SSL", False)
EMAIL_USE_TLS = _mail.get("EMAIL_USE_TLS", False)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environment.read_text("EVALHUB_EMAIL_FROM") or "evalhub@localhost"

# Without it litellm asks for prices over the network when it is imported.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# There are none, and to look for them pydantic reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": environment.read_text("EVALHUB_LOG_LEVEL", "WARNING")},
    # It logs whole addresses, and those of webhooks and targets may contain tokens.
    "loggers": {"httpx": {"level": "WARNING"}},
}
