"""Non-negative matrix factorisation."""

import math
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn import config_context
from sklearn import decomposition as stock
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from fastml._runtime.callbacks import (
    NO_TASK,
    CallbackSupportMixin,
    Task,
    fit_context,
    fit_task,
)
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.parameters import validate_params
from fastml._runtime.plain import note_columns
from fastml._runtime.versioned import Versioned
from fastml.decomposition._descent import Penalties, Rule, descend
from fastml.decomposition._factors import Data, Factor, fitted, reconstruction_error
from fastml.decomposition._multiplication import multiply
from fastml.decomposition._nndsvd import Start, survey

StockNMF = stock.NMF
stock_factorization = stock.non_negative_factorization


@documented_by(StockNMF)
class NMF(Versioned, CallbackSupportMixin, Start, StockNMF):
    """Non-negative matrix factorisation, compiled.

    Coordinate descent and multiplicative updates go through the same steps as scikit-learn's, to
    the same factors up to rounding. The result does not depend on the number of threads.

    Parameters
    ----------
    With `solver="hals"` (ours) coordinate descent makes several sweeps over the coordinates of a
    factor where these are cheap beside the products with `X` that they start from: as low a loss
    after fewer iterations, each of which costs little more.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import NMF
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> model = NMF(n_components=2, init="random", random_state=0)
    >>> W = model.fit_transform(X)
    >>> W.shape, model.components_.shape
    ((6, 2), (2, 2))
    >>> bool(np.abs(W @ model.components_ - X).max() < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **StockNMF._parameter_constraints,
        "solver": [StrOptions({"cd", "mu", "hals"})],
    }

    @documented_by(StockNMF.fit)
    @accelerated
    def fit(self, X, y=None, **params):
        """Learn the factorisation of `X`."""
        self.fit_transform(X, **params)
        return self

    @documented_by(StockNMF.fit_transform)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X, y=None, W=None, H=None):
        """Learn the factorisation of `X` and return W."""
        X = validated(self, X)
        with config_context(assume_finite=True), fit_task(self, self.max_iter, X=X) as task:
            data, factors, self.n_iter_ = self._factorize(X, W, H, task=task)
            self.reconstruction_err_ = reconstruction_error(data, *factors, self._beta_loss)
            vars(self).update(fitted(factors[1]))
            task.attributes = {}
        return factors[0].values

    @documented_by(StockNMF.transform)
    @accelerated
    def transform(self, X):
        """Return W for the rows of `X`, with the H that was learnt."""
        check_is_fitted(self)
        X = validated(self, X, reset=False, ensure_non_negative=True)
        with config_context(assume_finite=True):
            _, (W, _), _ = self._factorize(X, None, self.components_, update_H=False)
        return W.values

    def _fit_transform(self, X, y=None, W=None, H=None, update_H=True):
        _, (W, B), n_iter = self._factorize(X, W, H, update_H=update_H)
        return W.values, B.values.T, n_iter

    def _factorize(
        self, X: Any, W: Any, H: Any, *, update_H: bool = True, task: Task = NO_TASK
    ) -> tuple[Data, tuple[Factor, Factor], int]:
        """X as kernels take it, W and the transpose of H, and the number of iterations."""
        self._check_params(X)
        refuse_zeros(X, self._beta_loss)
        data = Data(X)
        W, H = self._check_w_h(data.X, W, H, update_H)
        factors = Factor(W), Factor(H.T)
        penalties = Penalties(*self._compute_regularization(X))
        rule = Rule(self.tol, self.max_iter, update_H, self.verbose, task)
        if self.solver == "mu":
            n_iter = multiply(data, *factors, self._beta_loss, penalties, rule)
        else:
            n_iter = descend(
                data,
                *factors,
                penalties,
                rule,
                shuffle=self.shuffle,
                random_state=self.random_state,
                repeated=self.solver == "hals",
            )
        if n_iter == self.max_iter and self.tol > 0:
            warnings.warn(
                f"Maximum number of iterations {self.max_iter} reached. Increase it to improve "
                "convergence.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return data, factors, n_iter

    def __to_sklearn_state__(self, state: dict[str, Any]) -> dict[str, Any]:
        return state | {"solver": "cd" if self.solver == "hals" else self.solver}


def validated(model: Any, X: Any, *, reset: bool = True, ensure_non_negative: bool = False) -> Any:
    """X as scikit-learn's checks leave it. Tables of floats are looked at here, on all threads."""
    finite = False
    if _is_table(X):
        least, total = survey(X)
        finite = math.isfinite(total)
        if finite and (reset or _is_known(model, X)) and (least >= 0 or not ensure_non_negative):
            if reset:
                note_columns(model, X)
            return X
    return validate_data(
        model,
        X,
        reset=reset,
        accept_sparse=("csr", "csc"),
        dtype=[np.float64, np.float32],
        ensure_all_finite=not finite,
        ensure_non_negative=ensure_non_negative,
    )


def _is_table(X: Any) -> bool:
    if type(X) is not np.ndarray or X.dtype.char not in "fd" or not X.dtype.isnative:
        return False
    return X.ndim == 2 and X.size > 0 and X.flags.c_contiguous and X.flags.aligned


def _is_known(model: Any, X: Any) -> bool:
    """Whether X has the columns that the model was fitted to."""
    known = vars(model)
    return X.shape[1] == known.get("n_features_in_") and "feature_names_in_" not in known


def refuse_zeros(X: Any, beta: float) -> None:
    if beta <= 0 and X.min() == 0:
        raise ValueError(
            "When beta_loss <= 0 and X contains zeros, the solver may diverge. Please add small "
            "values to X, or use a positive beta_loss."
        )


@documented_by(stock_factorization)
@accelerated
@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "W": ["array-like", None],
        "H": ["array-like", None],
        "update_H": ["boolean"],
    },
    prefer_skip_nested_validation=False,
)
def non_negative_factorization(
    X,
    W=None,
    H=None,
    n_components="auto",
    *,
    init=None,
    update_H=True,
    solver="cd",
    beta_loss="frobenius",
    tol=1e-4,
    max_iter=200,
    alpha_W=0.0,
    alpha_H="same",
    l1_ratio=0.0,
    random_state=None,
    verbose=0,
    shuffle=False,
):
    """Factorise a non-negative matrix, compiled.

    Parameters
    ----------
    `solver` may also be "hals": see :class:`~fastml.decomposition.NMF`.

    Examples
    --------
    >>> import numpy as np
    >>> from fastml.decomposition import non_negative_factorization
    >>> X = np.array([[1, 1], [2, 1], [3, 1.2], [4, 1], [5, 0.8], [6, 1]])
    >>> W, H, n_iter = non_negative_factorization(
    ...     X, n_components=2, init="random", random_state=0)
    >>> W.shape, H.shape
    ((6, 2), (2, 2))
    """
    model = NMF(
        n_components=n_components,
        init=init,
        solver=solver,
        beta_loss=beta_loss,
        tol=tol,
        max_iter=max_iter,
        random_state=random_state,
        alpha_W=alpha_W,
        alpha_H=alpha_H,
        l1_ratio=l1_ratio,
        verbose=verbose,
        shuffle=shuffle,
    )
    model._validate_params()
    X = check_array(X, accept_sparse=("csr", "csc"), dtype=[np.float64, np.float32])
    with config_context(assume_finite=True):
        return model._fit_transform(X, W=W, H=H, update_H=update_H)
