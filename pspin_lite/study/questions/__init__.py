"""The second study's questions, answered from the records."""
