"""Decision trees."""

from __future__ import annotations

from sklearn import tree as stock
from sklearn.utils._param_validation import StrOptions

from fastml._runtime.callbacks import fit_context
from fastml._runtime.dispatch import accelerated
from fastml._runtime.docs import documented_by
from fastml._runtime.versioned import Versioned
from fastml.jit import Criterion
from fastml.tree._grown import GrownTree, shares_of
from fastml.tree._queries import require

StockDecisionTreeClassifier = stock.DecisionTreeClassifier
StockDecisionTreeRegressor = stock.DecisionTreeRegressor
StockExtraTreeClassifier = stock.ExtraTreeClassifier
StockExtraTreeRegressor = stock.ExtraTreeRegressor


def with_criteria(constraints: dict, *names: str) -> dict:
    """The parameter constraints with criteria more: those named, and the user's own."""
    known = [
        StrOptions({*each.options, *names}) if isinstance(each, StrOptions) else each
        for each in constraints["criterion"]
    ]
    return constraints | {"criterion": [*known, Criterion]}


@documented_by(StockDecisionTreeClassifier)
class DecisionTreeClassifier(Versioned, GrownTree, StockDecisionTreeClassifier):
    """A decision tree classifier, compiled.

    The same tree as scikit-learn's. Beyond its criteria there is "misclassification", the share
    of rows that are not of the most frequent class.

    Examples
    --------
    >>> from fastml.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(random_state=0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> tree.predict([[0.5], [2.5]])
    array([0, 1])
    >>> tree.tree_.threshold[0]
    np.float64(1.5)
    """

    _is_classifier = True
    _parameter_constraints = with_criteria(
        StockDecisionTreeClassifier._parameter_constraints, "misclassification"
    )

    @documented_by(StockDecisionTreeClassifier.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, check_input=True):
        """Build a decision tree classifier from the training set (`X`, `y`)."""
        return self._fit(X, y, sample_weight=sample_weight, check_input=check_input)

    @documented_by(StockDecisionTreeClassifier.predict_proba)
    @accelerated
    def predict_proba(self, X, check_input=True):
        """Predict the shares of the classes: those in the leaf that a row of `X` reaches."""
        require(self, "tree_")
        X = self._validate_X_predict(X, check_input)
        return shares_of(self, self._values(X))


@documented_by(StockDecisionTreeRegressor)
class DecisionTreeRegressor(Versioned, GrownTree, StockDecisionTreeRegressor):
    """A decision tree regressor, compiled. The same tree as scikit-learn's.

    Examples
    --------
    >>> from fastml.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor(max_depth=1).fit([[0], [1], [2], [3]], [0, 1, 2, 9])
    >>> tree.predict([[1], [4]])
    array([1., 9.])
    """

    _is_classifier = False
    _parameter_constraints = with_criteria(StockDecisionTreeRegressor._parameter_constraints)

    @documented_by(StockDecisionTreeRegressor.fit)
    @accelerated
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, check_input=True):
        """Build a decision tree regressor from the training set (`X`, `y`)."""
        return self._fit(X, y, sample_weight=sample_weight, check_input=check_input)


@documented_by(StockExtraTreeClassifier)
class ExtraTreeClassifier(DecisionTreeClassifier, StockExtraTreeClassifier):
    """An extremely randomized tree classifier, compiled. The same tree as scikit-learn's.

    Examples
    --------
    >>> from fastml.tree import ExtraTreeClassifier
    >>> tree = ExtraTreeClassifier(random_state=0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> tree.predict([[0], [3]])
    array([0, 1])
    """


@documented_by(StockExtraTreeRegressor)
class ExtraTreeRegressor(DecisionTreeRegressor, StockExtraTreeRegressor):
    """An extremely randomized tree regressor, compiled. The same tree as scikit-learn's.

    Examples
    --------
    >>> from fastml.tree import ExtraTreeRegressor
    >>> tree = ExtraTreeRegressor(random_state=0).fit([[0], [1], [2], [3]], [0, 0, 1, 1])
    >>> tree.predict([[0], [3]])
    array([0., 1.])
    """


# The trees that may be raised together: a class derived from them may do something of its own.
TREES = (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
OURS = dict(
    zip(
        (
            StockDecisionTreeClassifier,
            StockDecisionTreeRegressor,
            StockExtraTreeClassifier,
            StockExtraTreeRegressor,
        ),
        TREES,
        strict=True,
    )
)
