"""The web application."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.urls import reverse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_wsgi_application()
# The first address loads every page's code, and templates are compiled; so the web processes that are forked share
# them, and no request waits for it.
reverse("project-list")
pages = engines["jinja2"].env
for name in pages.list_templates():
    pages.get_template(name)
# What is loaded stays: the collector would look through all of it again in the midst of a request.
gc.collect()
gc.freeze()
