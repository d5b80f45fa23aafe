"""HTTP exchanges: which of them are turns of a model, judged once they are over."""
