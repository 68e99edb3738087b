"""Matrix completion and recommendation, from ratings or from what users did."""

from fastml.recommendation._als import ALS
from fastml.recommendation._glm import GLMFactorization
from fastml.recommendation._implicit import ImplicitALS
from fastml.recommendation._sgd import SGDFactorization
from fastml.recommendation._splits import split_ratings

__all__ = ["ALS", "GLMFactorization", "ImplicitALS", "SGDFactorization", "split_ratings"]
