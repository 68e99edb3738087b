"""Where the compiled families land."""
