"""Judge trials: evidence in, scores out.

Pure Python: no module here uses Django, Celery, a subprocess, a clock or the environment.
"""
