"""Claude, on whatever wire: what its models do, and the contract of its reasoning as data."""
