"""The study: which networks are compared, their runs, what the records say."""
