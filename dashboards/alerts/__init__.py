"""Alerts: rules, routing and runbooks, rendered from one table."""
