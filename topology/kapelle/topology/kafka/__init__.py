"""The Kafka runtime: the member's log on real brokers."""
