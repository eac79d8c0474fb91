"""The web application."""

from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.urls import reverse

from evalhub.startup import set_up
from runs.sandbox.reader_processes import ReaderProcesses
from scenarios.reading import set_caller

set_up()
# Its processes start when a file is uploaded, which is after gunicorn forked.
set_caller(ReaderProcesses())
application = get_wsgi_application()
# The first address loads the code of every page, and templates compile: before gunicorn forks, so that its processes
# share both and no request waits.
reverse("project-list")
engine = engines["jinja2"]
if isinstance(engine, Jinja2):
    for name in engine.env.list_templates():
        engine.env.get_template(name)
