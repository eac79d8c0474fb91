from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("teams", "0003_seed_manifest"),
    ]

    operations = [
        migrations.DeleteModel(name="SignInFailure"),
        migrations.CreateModel(
            name="PasswordGuesses",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=64, unique=True)),
                ("count", models.PositiveIntegerField(default=0)),
                ("last", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
