"""The proof of schedules and backfills."""
