"""The pages, and what writes the parts of them that the code already says."""
