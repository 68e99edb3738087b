"""A folder for PYTHONPATH; see fastml/_runtime/children.py."""
