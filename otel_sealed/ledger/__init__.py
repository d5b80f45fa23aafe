"""What came in, remembered: bounded, content-addressed, session-free."""
