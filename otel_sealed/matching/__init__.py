"""Matching: which recorded turns a request replays, and where each of them is in it."""
