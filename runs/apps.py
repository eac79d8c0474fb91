from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"
    label = "runs"

    def ready(self) -> None:
        """Give patterns that RE2 cannot run a process of their own."""
        from evaluators.patterns import set_runner
        from runs.containment.pattern_processes import run_pattern

        set_runner(run_pattern)
