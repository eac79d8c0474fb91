"""The web application for ASGI servers; gunicorn with `evalhub.wsgi` is faster (docs/operations.md)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_asgi_application()
