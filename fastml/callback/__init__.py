"""scikit-learn's callbacks: follow, score and stop a fit while it runs.

These are scikit-learn's own objects where it has ``sklearn.callback`` (1.9 and later).
Earlier versions get an implementation of the same protocol, so that a script that
calls ``estimator.set_callbacks(ProgressBar())`` runs on every supported version.
"""

from fastml._runtime.modules import fall_through

try:
    from sklearn.callback import (
        AutoPropagatedCallback,
        CallbackContext,
        CallbackSupportMixin,
        FitCallback,
        ProgressBar,
        ScoringMonitor,
        ScoringMonitorLog,
        with_callbacks,
    )
except ModuleNotFoundError:
    from fastml.callback._context import CallbackContext
    from fastml.callback._progress import ProgressBar
    from fastml.callback._protocol import AutoPropagatedCallback, FitCallback
    from fastml.callback._scoring import ScoringMonitor, ScoringMonitorLog
    from fastml.callback._support import CallbackSupportMixin, with_callbacks

__all__ = [
    "AutoPropagatedCallback",
    "CallbackContext",
    "CallbackSupportMixin",
    "FitCallback",
    "ProgressBar",
    "ScoringMonitor",
    "ScoringMonitorLog",
    "with_callbacks",
]

fall_through(__name__)
