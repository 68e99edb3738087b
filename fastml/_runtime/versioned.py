"""Pickles of our estimators know the scikit-learn that made them, as scikit-learn's do."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from fastml._runtime.parameters import CheckedOnce


class Versioned(CheckedOnce):
    """Mixin of all our estimators that stands before the stock class.

    BaseEstimator notes and checks the version for classes in the package sklearn alone. Pickles
    of stock models also need it when they load as ours, which they do while patched: the note
    is not an attribute of the model.
    """

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        if type(self).__module__.startswith("fastml."):
            state = dict(state, _sklearn_version=sklearn.__version__)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if type(self).__module__.startswith("fastml."):
            made_by = state.pop("_sklearn_version", sklearn.__version__)
            if made_by != sklearn.__version__:
                warnings.warn(
                    InconsistentVersionWarning(
                        estimator_name=type(self).__name__,
                        current_sklearn_version=sklearn.__version__,
                        original_sklearn_version=made_by,
                    ),
                    stacklevel=2,
                )
        super().__setstate__(state)  # type: ignore[misc]
