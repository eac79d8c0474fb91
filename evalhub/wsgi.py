"""The web application."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_wsgi_application()
# Pages and their imports before the first request, and before web processes are forked, which share them so.
get_resolver().reverse_dict  # noqa: B018 (made when it is first asked for)
# What is loaded stays: the collector would look through all of it again in the midst of a request.
gc.collect()
gc.freeze()
