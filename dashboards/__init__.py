"""Dashboards and alerts for what `otel_sealed` sends, as code; what is imported is committed."""
