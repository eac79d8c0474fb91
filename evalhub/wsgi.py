"""The web application."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.urls import reverse

from evalhub.web.memory import use_one_pool

use_one_pool()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
application = get_wsgi_application()
# The first address loads every page's code, and templates are compiled; so the web processes that are forked share
# them, and no request waits for it.
reverse("project-list")
engine = engines["jinja2"]
if isinstance(engine, Jinja2):
    for name in engine.env.list_templates():
        engine.env.get_template(name)
# What is loaded stays: the collector would look through all of it again in the midst of a request.
gc.collect()
gc.freeze()
# A request makes some thousand objects, nearly all of which are gone at its end without the collector.
gc.set_threshold(10_000, *gc.get_threshold()[1:])
