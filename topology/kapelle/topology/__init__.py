"""Where it happens: topics, tables, the Kafka runtime and the embedded runtime."""
