"""The web application."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import reverse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_wsgi_application()
# The first address loads every page; so the web processes that are forked share them, and no request waits for it.
reverse("project-list")
# What is loaded stays: the collector would look through all of it again in the midst of a request.
gc.collect()
gc.freeze()
