"""Transforms of vectors to vectors of probabilities."""
from ... import _functions, _ops
from ..._dtypes import finfo
from .. import constraints
from .base import Transform

op = _ops.function


class SoftmaxTransform(Transform):
    """Whose inverse is the logarithm: of the arguments that have the same result, the sum of whose exp is 1."""
    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = False

    def _call(self, x):
        return _functions.softmax(x, -1)

    def _inverse(self, y):
        return y.log()


class StickBreakingTransform(Transform):
    """Of one number fewer than there are probabilities: a sigmoid of each breaks off its part of what is left of 1.
    Offsets make equal parts of zeros."""
    domain, codomain = constraints.real_vector, constraints.simplex

    @staticmethod
    def _shifted(x):
        left = _functions.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)  # the parts after each
        return x - left.log()

    def _call(self, x):
        shifted = self._shifted(x)
        left = (-shifted).sigmoid().cumprod(-1)
        return op('pad')(shifted.sigmoid(), (0, 1), value=1.0) * op('pad')(left, (1, 0), value=1.0)

    def _inverse(self, y):
        broken = y[..., :-1]
        left = (1 - broken.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return broken.log() - left.log() - self._shifted(_functions.zeros_like(broken))

    def log_abs_det_jacobian(self, x, y):
        # The matrix is triangular; on its diagonal are y times the part of the stick that is left.
        return (y[..., :-1].log() + op('logsigmoid')(-self._shifted(x))).sum(-1)

    def forward_shape(self, shape):
        return tuple(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        return tuple(shape[:-1]) + (shape[-1] - 1,)
