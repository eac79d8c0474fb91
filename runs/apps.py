from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"

    def ready(self) -> None:
        """Give patterns that RE2 cannot run a process of their own, and register the system checks."""
        from evaluators.patterns import set_runner
        from runs import worker_checks  # noqa: F401  # imported for what it registers
        from runs.containment.pattern_processes import run_pattern
        from runs.warehouse import store_identity  # noqa: F401  # likewise

        set_runner(run_pattern)
