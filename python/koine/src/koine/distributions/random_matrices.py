"""Distributions of matrices: Wishart of covariances, LKJCholesky of factors of correlations."""
import math

from .. import _functions, _ops, linalg
from . import constraints
from .covariance import OfCovariance, log_det, require_matrices, squared_norm
from .distribution import Distribution, broadcast, exactly_one, expanded
from .gamma import Beta
from .gamma_deviates import log_gamma_deviates

op = _ops.function


class Wishart(OfCovariance):
    """The sum of x x^T of `df` normal vectors with the given covariance, where df is a whole number; else what its
    density gives."""
    has_rsample = True
    support = constraints.positive_definite

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        name, matrix = exactly_one('Wishart', covariance_matrix=covariance_matrix, precision_matrix=precision_matrix,
                                   scale_tril=scale_tril)
        require_matrices('Wishart', name, matrix)
        df = broadcast(matrix[..., 0, 0], df)[1]
        self.df = df
        setattr(self, name, expanded(matrix, df.shape + matrix.shape[-2:]))
        super().__init__(df.shape, matrix.shape[-2:], validate_args)

    @property
    def arg_constraints(self):
        least = self._event_shape[-1] - 1
        return {'df': constraints.greater_than(least, '%d, the size of the matrices less 1' % least),
                **OfCovariance.arg_constraints}

    @property
    def _wide_df(self):
        return self.df.unsqueeze(-1).unsqueeze(-1)

    @property
    def mean(self):
        return self._wide_df * self.covariance_matrix

    @property
    def mode(self):
        """NaN where the density is infinite at singular matrices."""
        factor = self._wide_df - self._event_shape[-1] - 1
        mode = factor * self.covariance_matrix
        return _functions.where((factor <= 0).expand(mode.shape), math.nan, mode)

    @property
    def variance(self):
        diagonal = self.covariance_matrix.diagonal(0, -2, -1)
        return self._wide_df * (self.covariance_matrix ** 2 + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _halves(self):
        """Of df, df - 1, ..., one for each row."""
        steps = _functions.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return (self.df.unsqueeze(-1) - steps) / 2

    def rsample(self, sample_shape=()):
        # L A A^T L^T, A lower triangular with roots of chi-squared deviates on the diagonal (Bartlett, 1933).
        shape = self._extended_shape(sample_shape)
        normal = _functions.randn(shape, dtype=self.df.dtype, device=self.df.device)
        half = self._halves().expand(shape[:-1])
        diagonal = (0.5 * (log_gamma_deviates(half) + math.log(2))).exp()
        factor = self.scale_tril @ (normal.tril(-1) + diagonal.diag_embed())
        return factor @ factor.mT

    def _log_norm(self):
        size = self._event_shape[-1]
        return self.df * (0.5 * size * math.log(2) + log_det(self.scale_tril)) + op('mvlgamma')(self.df / 2, size)

    def log_prob(self, value):
        self._validate_sample(value)
        factor, _ = _functions.broadcast_tensors(linalg.cholesky(value), self.scale_tril)
        # The trace of V^-1 X, where X = F F^T, is the sum over the columns of F.
        trace = squared_norm(self.scale_tril, factor.movedim(-1, 0)).sum(0)
        return (self.df - self._event_shape[-1] - 1) * log_det(factor) - 0.5 * trace - self._log_norm()

    def entropy(self):
        size = self._event_shape[-1]
        # The expectation of log_det(factor) less log_det(scale_tril).
        mean = 0.5 * self._halves().digamma().sum(-1) + 0.5 * size * math.log(2)
        mean = mean + log_det(self.scale_tril)
        return self._log_norm() + 0.5 * self.df * size - (self.df - size - 1) * mean


class LKJCholesky(Distribution):
    """Factors L of correlation matrices of `dim` rows with a density of L L^T proportional to its determinant to the
    power of concentration - 1: Lewandowski, Kurowicka and Joe (2009)."""
    arg_constraints = {'concentration': constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError('LKJCholesky: dim must be 2 or more, not %s' % dim)
        self.dim = dim
        self.concentration, = broadcast(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _rows(self):
        """The numbers of the rows below the first, which are those of their elements before the diagonal."""
        return _functions.arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    def sample(self, sample_shape=()):
        """The elements of a row before the diagonal have a direction, that of normal deviates, and a squared length,
        a Beta deviate (the onion method)."""
        shape, rows = self._extended_shape(sample_shape), self._rows()
        like = self.concentration.detach()
        outer = like.unsqueeze(-1) + (self.dim - 1 - rows) / 2
        squares = Beta(rows / 2, outer, validate_args=False).sample(sample_shape).unsqueeze(-1)
        normal = _functions.randn(shape[:-2] + (self.dim - 1, self.dim), dtype=like.dtype, device=like.device).tril()
        direction = normal / (normal ** 2).sum(-1, keepdim=True).sqrt()
        below = direction * squares.sqrt()
        diagonal = op('pad')((1 - squares.squeeze(-1)).sqrt(), (1, 0), value=1.0)
        return op('pad')(below, (0, 0, 1, 0)) + diagonal.diag_embed()

    def log_prob(self, value):
        self._validate_sample(value)
        rows, c = self._rows(), self.concentration.unsqueeze(-1)
        powers = 2 * (c - 1) + self.dim - 1 - rows
        # The integral over a row of so many elements: pi**(rows / 2) Gamma(outer) / Gamma(outer + rows / 2).
        outer = c + (self.dim - 1 - rows) / 2
        log_norm = 0.5 * math.log(math.pi) * rows + outer.lgamma() - (outer + rows / 2).lgamma()
        return (powers * value.diagonal(0, -2, -1)[..., 1:].log() - log_norm).sum(-1)
