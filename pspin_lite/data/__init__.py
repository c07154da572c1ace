"""Data: from a corpus to packed sequences of tokens."""
