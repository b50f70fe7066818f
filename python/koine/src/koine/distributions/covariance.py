"""What distributions share that are given one of a covariance matrix, its inverse, and its factor."""
from .. import _functions, _ops, linalg
from . import constraints
from .distribution import Distribution, lazy, require_dims

op = _ops.function


class OfCovariance(Distribution):
    """One of the three is an attribute that the constructor sets, the others follow; `scale_tril`, a lower triangular
    matrix L with the covariance L L^T, saves the factorization."""
    arg_constraints = {'covariance_matrix': constraints.positive_definite,
                       'precision_matrix': constraints.positive_definite, 'scale_tril': constraints.lower_cholesky}

    @lazy
    def scale_tril(self):
        if 'covariance_matrix' in self.__dict__:
            return linalg.cholesky(self.covariance_matrix)
        # P = U U^T with an upper triangular U, the factor of P with rows and columns reversed, so that the covariance
        # is U^-T U^-1, whose first factor is lower triangular.
        reverse = lambda matrix: op('flip')(matrix, (-2, -1))  # noqa: E731
        lower = reverse(linalg.cholesky(reverse(self.precision_matrix))).mT
        return linalg.solve_triangular(lower, _identity_like(lower), upper=False)

    @lazy
    def covariance_matrix(self):
        return self.scale_tril @ self.scale_tril.mT

    @lazy
    def precision_matrix(self):
        inverse = linalg.solve_triangular(self.scale_tril, _identity_like(self.scale_tril), upper=False)
        return inverse.mT @ inverse


def require_matrices(kind, name, matrix):
    require_dims(kind, name, matrix, 2)
    if matrix.shape[-1] != matrix.shape[-2]:
        raise ValueError('%s: %s must be square matrices, not of the shape %s' % (kind, name, matrix.shape))


def _identity_like(matrix):
    return _functions.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device).expand(matrix.shape)


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
