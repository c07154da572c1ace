"""Training: from a configuration to a run's folder."""
