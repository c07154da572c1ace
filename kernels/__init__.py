"""Triton kernels and their launchers, imported as `pspin_kernels`. They know nothing of models or training."""
