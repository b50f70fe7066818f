"""The normal distribution of vectors."""
import math

from .. import _functions, _ops, linalg
from . import constraints
from .distribution import Symmetric, exactly_one, lazy, require_dims

op = _ops.function


class MultivariateNormal(Symmetric):
    """With the mean `loc` and one of the covariance matrix, its inverse, and its factor `scale_tril`, a lower
    triangular matrix L with the covariance L L^T, which saves the factorization."""
    has_rsample = True
    arg_constraints = {'loc': constraints.real_vector, 'covariance_matrix': constraints.positive_definite,
                       'precision_matrix': constraints.positive_definite, 'scale_tril': constraints.lower_cholesky}
    support = constraints.real_vector

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        name, matrix = exactly_one('MultivariateNormal', covariance_matrix=covariance_matrix,
                                   precision_matrix=precision_matrix, scale_tril=scale_tril)
        require_dims('MultivariateNormal', 'loc', loc, 1)
        require_dims('MultivariateNormal', name, matrix, 2)
        if matrix.shape[-2:] != loc.shape[-1:] * 2:
            raise ValueError('MultivariateNormal: loc has the shape %s, which does not fit the matrices of %s, %s'
                             % (loc.shape, name, matrix.shape))
        matrix, loc = _functions.broadcast_tensors(matrix, loc.unsqueeze(-1))
        self.loc = loc[..., 0]
        setattr(self, name, matrix)
        super().__init__(self.loc.shape[:-1], self.loc.shape[-1:], validate_args)

    @lazy
    def scale_tril(self):
        if 'covariance_matrix' in self.__dict__:
            return linalg.cholesky(self.covariance_matrix)
        # P = U U^T with an upper triangular U, the factor of P with rows and columns reversed, so that the covariance
        # is U^-T U^-1, whose first factor is lower triangular.
        reverse = lambda matrix: op('flip')(matrix, (-2, -1))  # noqa: E731
        lower = reverse(linalg.cholesky(reverse(self.precision_matrix))).mT
        return linalg.solve_triangular(lower, self._identity(), upper=False)

    @lazy
    def covariance_matrix(self):
        return self.scale_tril @ self.scale_tril.mT

    @lazy
    def precision_matrix(self):
        inverse = linalg.solve_triangular(self.scale_tril, self._identity(), upper=False)
        return inverse.mT @ inverse

    def _identity(self):
        size, = self._event_shape
        one = _functions.eye(size, dtype=self.loc.dtype, device=self.loc.device)
        return one.expand(self._batch_shape + (size, size))

    @property
    def variance(self):
        return (self.scale_tril ** 2).sum(-1)

    def rsample(self, sample_shape=()):
        standard = _functions.randn(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + (self.scale_tril @ standard.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value):
        self._validate_sample(value)
        squares = squared_norm(self.scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - log_det(self.scale_tril)

    def entropy(self):
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + log_det(self.scale_tril)


def log_det(lower):
    return lower.diagonal(0, -2, -1).log().sum(-1)


def squared_norm(lower, vectors):
    """Of lower^-1 vectors, whose first dimensions, before those of `lower`, become columns of one system."""
    batch, size = lower.shape[:-2], lower.shape[-1]
    vectors = vectors.expand(vectors.shape[:max(vectors.ndim - 1 - len(batch), 0)] + batch + (size,))
    first = vectors.shape[:vectors.ndim - 1 - len(batch)]
    columns = vectors.reshape((-1,) + batch + (size,)).movedim(0, -1)
    squares = (linalg.solve_triangular(lower, columns, upper=False) ** 2).sum(-2)
    return squares.movedim(-1, 0).reshape(first + batch)
