"""Channels, events to notify of, and their deliveries."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import runs.models.notification


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0025_verdicts'),
        ('teams', '0006_smallest_effects'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('kind', models.CharField(choices=[('email', 'E-mail'), ('webhook', 'Webhook'), ('slack', 'Slack')], max_length=10)),
                ('recipients', models.JSONField(default=list)),
                ('address', models.CharField(blank=True, max_length=500)),
                ('secret', models.CharField(blank=True, max_length=200)),
                ('events', models.JSONField(default=list)),
                ('created', models.DateTimeField(default=django.utils.timezone.now)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='channels', to='teams.project')),
            ],
            options={
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event', models.CharField(choices=[('regression', 'Suspected regression'), ('run_failed', 'Run failed'), ('assigned', 'Alert assigned'), ('digest', 'Weekly digest'), ('test', 'Test')], max_length=12)),
                ('key', models.CharField(max_length=120, unique=True)),
                ('content', models.JSONField(default=dict)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.alert')),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notifications', to='teams.project')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                ('to', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(default=runs.models.notification.new_uid, max_length=40, unique=True)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('sending', 'Sending'), ('sent', 'Sent'), ('failed', 'Failed'), ('skipped', 'Skipped')], default='queued', max_length=8)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('first_attempt', models.DateTimeField(null=True)),
                ('next_attempt', models.DateTimeField(default=django.utils.timezone.now)),
                ('token', models.CharField(blank=True, max_length=32)),
                ('lease_until', models.DateTimeField(null=True)),
                ('finished', models.DateTimeField(null=True)),
                ('status', models.PositiveIntegerField(null=True)),
                ('response', models.TextField(blank=True)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.channel')),
                ('notification', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='runs.notification')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.AddConstraint(
            model_name='channel',
            constraint=models.UniqueConstraint(fields=('project', 'name'), name='one_channel_a_name'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state__in', ['queued', 'sending'])), fields=['next_attempt'], name='delivery_open'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('notification', 'channel'), name='one_delivery_a_channel'),
        ),
    ]
