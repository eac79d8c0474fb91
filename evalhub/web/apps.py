from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "evalhub.web"
    label = "web"

    def ready(self) -> None:
        # Imported for what it registers.
        from evalhub.web import checks  # noqa: F401
