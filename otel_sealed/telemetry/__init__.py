"""Emission: what the reports of the core become in OpenTelemetry (docs/attributes.md)."""
