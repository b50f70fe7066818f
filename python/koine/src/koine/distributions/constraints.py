"""What parameters and samples must be: constraints.positive.check(x) says it of each element, or of each vector or
matrix where the constraint is of these."""
from .. import _dtypes, linalg


class Constraint:
    """`check` returns bools without the last `event_dim` dimensions; `text` ends the sentence "it must be ..."."""

    def __init__(self, text, check, event_dim=0, is_discrete=False):
        self.text, self._check, self.event_dim, self.is_discrete = text, check, event_dim, is_discrete

    def check(self, value):
        return self._check(value)

    def __repr__(self):
        return self.text


real = Constraint('a real number', lambda value: value == value)
positive = Constraint('greater than 0', lambda value: value > 0)
nonnegative = Constraint('0 or more', lambda value: value >= 0)
unit_interval = Constraint('from 0 to 1', lambda value: (value >= 0) & (value <= 1))
boolean = Constraint('0 or 1', lambda value: (value == 0) | (value == 1), is_discrete=True)
nonnegative_integer = Constraint('a whole number, 0 or more', lambda value: (value % 1 == 0) & (value >= 0),
                                 is_discrete=True)


def _named(bound, name):
    return bound if name is None else name


def greater_than(lower_bound, name=None):
    """A bound that is a tensor has a `name` for messages; so below."""
    return Constraint('greater than %s' % _named(lower_bound, name), lambda value: value > lower_bound)


def less_than(upper_bound, name=None):
    return Constraint('less than %s' % _named(upper_bound, name), lambda value: value < upper_bound)


def interval(lower_bound, upper_bound, names=None):
    return Constraint('from %s to %s' % (names or (lower_bound, upper_bound)),
                      lambda value: (value >= lower_bound) & (value <= upper_bound))


def integer_interval(lower_bound, upper_bound, names=None):
    return Constraint('a whole number from %s to %s' % (names or (lower_bound, upper_bound)),
                      lambda value: (value % 1 == 0) & (value >= lower_bound) & (value <= upper_bound),
                      is_discrete=True)


def independent(base, reinterpreted_batch_ndims):
    """Of whole vectors, matrices, ...: `base` of all elements of the last dimensions."""
    def check(value):
        holds = base.check(value)
        return holds.reshape(holds.shape[:holds.ndim - reinterpreted_batch_ndims] + (-1,)).all(-1)

    if reinterpreted_batch_ndims == 0:
        return base
    return Constraint(base.text, check, base.event_dim + reinterpreted_batch_ndims, base.is_discrete)


real_vector = independent(real, 1)


def _is_simplex(value):
    tolerance = max(1e-6, _dtypes.finfo(value.dtype).eps)
    return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < tolerance)


def _is_lower_cholesky(value):
    return (value.tril() == value).flatten(-2).all(-1) & (value.diagonal(0, -2, -1) > 0).all(-1)


def _is_positive_definite(value):
    symmetric = ((value - value.mT).abs() < 1e-6).flatten(-2).all(-1)
    return symmetric & (linalg.cholesky_ex(value)[1] == 0)


simplex = Constraint('0 or more, with a sum of 1 along the last dimension', _is_simplex, 1)
one_hot = Constraint('one 1 and zeros along the last dimension',
                     lambda value: boolean.check(value).all(-1) & (value.sum(-1) == 1), 1, True)
lower_cholesky = Constraint('a lower triangular matrix with a positive diagonal', _is_lower_cholesky, 2)
positive_definite = Constraint('a symmetric positive definite matrix', _is_positive_definite, 2)
