"""Output for people and programs: tables, timelines, graphs, JSON, and messages."""
