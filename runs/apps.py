from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"

    def ready(self) -> None:
        """Refuse wrong settings, and give patterns that RE2 cannot run a process of their own."""
        from evaluators.patterns import set_runner
        from runs.results.files import artifacts  # noqa: F401  # imported for the check that it registers
        from runs.sandbox.pattern_processes import run_pattern
        from runs.workers.worker_checks import refuse_wrong_settings

        refuse_wrong_settings()
        set_runner(run_pattern)
