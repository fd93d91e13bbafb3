"""Traces: our history as spans of OpenTelemetry. Sending them needs the extra `kapelle[otel]`."""
