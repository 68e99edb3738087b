"""Linear algebra that power iterations are made of."""
