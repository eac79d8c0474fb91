from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "evalhub.web"
    label = "web"

    def ready(self) -> None:
        # Imported because it registers the checks.
        from evalhub.web import checks  # noqa: F401
