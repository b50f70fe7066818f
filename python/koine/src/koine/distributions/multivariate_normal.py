"""Normal distributions of vectors."""
import math

from .. import _functions, _ops, linalg
from . import constraints
from .covariance import OfCovariance, log_det, squared_norm
from .distribution import Symmetric, exactly_one, expanded, require_dims

op = _ops.function


class _Vectors(Symmetric):
    """Subclasses have _factor(), with which the covariance is F F^T, _log_det(), that of a square one, and
    _squared(vectors), the squared norms of vectors in units of the covariance."""
    has_rsample = True
    support = constraints.real_vector

    def log_prob(self, value):
        self._validate_sample(value)
        squares = self._squared(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squares) - self._log_det()

    def entropy(self):
        return 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det()

    def _standard(self, shape):
        return _functions.randn(shape, dtype=self.loc.dtype, device=self.loc.device)


class MultivariateNormal(_Vectors, OfCovariance):
    """With the mean `loc` and one of the covariance matrix, its inverse, and its factor."""
    arg_constraints = {'loc': constraints.real_vector, **OfCovariance.arg_constraints}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        name, matrix = exactly_one('MultivariateNormal', covariance_matrix=covariance_matrix,
                                   precision_matrix=precision_matrix, scale_tril=scale_tril)
        require_dims('MultivariateNormal', 'loc', loc, 1)
        require_dims('MultivariateNormal', name, matrix, 2)
        if matrix.shape[-2:] != loc.shape[-1:] * 2:
            raise ValueError('MultivariateNormal: loc has the shape %s, which does not fit the matrices of %s, %s'
                             % (loc.shape, name, matrix.shape))
        batch, event = _functions.broadcast_tensors(matrix, loc.unsqueeze(-1))[0].shape[:-2], loc.shape[-1:]
        self.loc = expanded(loc, batch + event)
        setattr(self, name, expanded(matrix, batch + event * 2))
        super().__init__(batch, event, validate_args)

    @property
    def variance(self):
        return (self.scale_tril ** 2).sum(-1)

    def rsample(self, sample_shape=()):
        standard = self._standard(self._extended_shape(sample_shape))
        return self.loc + (self.scale_tril @ standard.unsqueeze(-1)).squeeze(-1)

    def _factor(self):
        return self.scale_tril

    def _log_det(self):
        return log_det(self.scale_tril)

    def _squared(self, vectors):
        return squared_norm(self.scale_tril, vectors)


class LowRankMultivariateNormal(_Vectors):
    """With the covariance W W^T + D of the matrix W, `cov_factor`, which has few columns, and of the diagonal of D,
    `cov_diag`. What is factorized is C = I + W^T D^-1 W, which has as many: the inverse of the covariance is
    D^-1 - D^-1 W C^-1 W^T D^-1 (Woodbury), its determinant |C| |D|."""
    arg_constraints = {'loc': constraints.real_vector, 'cov_factor': constraints.independent(constraints.real, 2),
                       'cov_diag': constraints.independent(constraints.positive, 1)}

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        for name, value, dims in (('loc', loc, 1), ('cov_factor', cov_factor, 2), ('cov_diag', cov_diag, 1)):
            require_dims('LowRankMultivariateNormal', name, value, dims)
        if not loc.shape[-1] == cov_factor.shape[-2] == cov_diag.shape[-1]:
            raise ValueError('LowRankMultivariateNormal: loc, cov_factor and cov_diag have the shapes %s, %s and %s, '
                             'which do not fit' % (loc.shape, cov_factor.shape, cov_diag.shape))
        wide = _functions.broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        batch, event = wide[0].shape[:-2], loc.shape[-1:]
        self.loc, self.cov_diag = expanded(loc, batch + event), expanded(cov_diag, batch + event)
        self.cov_factor = expanded(cov_factor, batch + cov_factor.shape[-2:])
        super().__init__(batch, event, validate_args)

    def _scaled(self):
        """W^T D^-1."""
        return (self.cov_factor / self.cov_diag.unsqueeze(-1)).mT

    def _small(self):
        """The factor of C."""
        one = _functions.eye(self.cov_factor.shape[-1], dtype=self.loc.dtype, device=self.loc.device)
        return linalg.cholesky(one + self._scaled() @ self.cov_factor)

    @property
    def covariance_matrix(self):
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def precision_matrix(self):
        part = linalg.solve_triangular(self._small(), self._scaled(), upper=False)
        return (1 / self.cov_diag).diag_embed() - part.mT @ part

    @property
    def scale_tril(self):
        return linalg.cholesky(self.covariance_matrix)

    @property
    def variance(self):
        return (self.cov_factor ** 2).sum(-1) + self.cov_diag

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        few = self._standard(shape[:-1] + self.cov_factor.shape[-1:])
        return (self.loc + (self.cov_factor @ few.unsqueeze(-1)).squeeze(-1)
                + self.cov_diag.sqrt() * self._standard(shape))

    def _factor(self):
        return op('cat')([self.cov_factor, self.cov_diag.sqrt().diag_embed()], -1)

    def _log_det(self):
        return log_det(self._small()) + 0.5 * self.cov_diag.log().sum(-1)

    def _squared(self, vectors):
        few = (self._scaled() @ vectors.unsqueeze(-1)).squeeze(-1)
        return (vectors ** 2 / self.cov_diag).sum(-1) - squared_norm(self._small(), few)
