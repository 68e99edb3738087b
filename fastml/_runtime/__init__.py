"""What every estimator shares: dispatch record, configuration, threads, callbacks, patching."""
