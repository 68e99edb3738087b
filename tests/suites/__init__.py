"""What every estimator has to stand, written once for all those in `registry`."""
