"""Joda-Time's dates and times as far as the language needs them: zones, moments, patterns."""
