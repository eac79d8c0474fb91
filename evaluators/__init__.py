"""What a trial is judged by: evidence in, scores out.

Pure Python: nothing here knows Django, Celery, a subprocess, a clock or the environment.
"""
