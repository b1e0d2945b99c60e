"""Runs the notebooks, and says what moved."""
