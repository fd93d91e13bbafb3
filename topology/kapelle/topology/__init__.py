"""Topics, tables, the Kafka runtime and the embedded runtime."""
