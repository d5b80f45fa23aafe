"""Emission: what the reports of the core become in OpenTelemetry (design §3)."""
