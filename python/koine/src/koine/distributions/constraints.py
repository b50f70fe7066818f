"""What parameters and samples must be: constraints.positive.check(x) says it of each element, or of each vector or
matrix where the constraint is of these."""
from .. import _dtypes, _functions, _ops, linalg


class Constraint:
    """`check` returns bools without the last `event_dim` dimensions; `text` ends the sentence "it must be ..."."""

    def __init__(self, text, check, event_dim=0, is_discrete=False):
        self.text, self._check, self.event_dim, self.is_discrete = text, check, event_dim, is_discrete

    def check(self, value):
        return self._check(value)

    def __repr__(self):
        return self.text


# --- elements ---------------------------------------------------------------------------------------------------------


class _LowerBound(Constraint):
    """A bound that is a tensor has a `name` for messages; so below."""

    def __init__(self, lower_bound, name=None):
        self.lower_bound = lower_bound
        super().__init__(self._words % _named(lower_bound, name), lambda value: self._holds(value, lower_bound))


class greater_than(_LowerBound):
    _words, _holds = 'greater than %s', staticmethod(lambda value, bound: value > bound)


class greater_than_eq(_LowerBound):
    _words, _holds = '%s or more', staticmethod(lambda value, bound: value >= bound)


class less_than(Constraint):
    def __init__(self, upper_bound, name=None):
        self.upper_bound = upper_bound
        super().__init__('less than %s' % _named(upper_bound, name), lambda value: value < upper_bound)


class _Range(Constraint):
    is_whole = False

    def __init__(self, lower_bound, upper_bound, names=None):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__(self._words % (names or (lower_bound, upper_bound)), self._holds, is_discrete=self.is_whole)

    def _holds(self, value):
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class interval(_Range):
    _words = 'from %s to %s'


class half_open_interval(_Range):
    _words = 'from %s to less than %s'

    def _holds(self, value):
        return (value >= self.lower_bound) & (value < self.upper_bound)


class integer_interval(_Range):
    _words, is_whole = 'a whole number from %s to %s', True

    def _holds(self, value):
        return (value % 1 == 0) & super()._holds(value)


def _named(bound, name):
    return bound if name is None else name


real = Constraint('a real number', lambda value: value == value)
positive = greater_than(0)
nonnegative = greater_than_eq(0)
unit_interval = interval(0, 1)
boolean = Constraint('0 or 1', lambda value: (value == 0) | (value == 1), is_discrete=True)
nonnegative_integer = Constraint('a whole number, 0 or more', lambda value: (value % 1 == 0) & (value >= 0),
                                 is_discrete=True)
positive_integer = Constraint('a whole number, 1 or more', lambda value: (value % 1 == 0) & (value >= 1),
                              is_discrete=True)


# --- vectors and matrices ---------------------------------------------------------------------------------------------


class independent(Constraint):
    """Of whole vectors, matrices, ...: `base_constraint` of all elements of the last dimensions."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__(base_constraint.text, self._holds, base_constraint.event_dim + reinterpreted_batch_ndims,
                         base_constraint.is_discrete)

    def _holds(self, value):
        holds = self.base_constraint.check(value)
        return holds.reshape(holds.shape[:holds.ndim - self.reinterpreted_batch_ndims] + (-1,)).all(-1)


class multinomial(Constraint):
    """Counts along the last dimension whose sum is `upper_bound`."""

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        super().__init__('whole numbers with a sum of %s along the last dimension' % upper_bound, self._holds, 1, True)

    def _holds(self, value):
        return nonnegative_integer.check(value).all(-1) & (value.sum(-1) == self.upper_bound)


class _Parts(Constraint):
    """Each of `cseq` of one of the parts along a dimension."""

    def __init__(self, cseq, dim):
        self.cseq, self.dim = list(cseq), dim
        super().__init__('in its parts ' + ', '.join(one.text for one in self.cseq), self._holds,
                         max(one.event_dim for one in self.cseq), any(one.is_discrete for one in self.cseq))


class cat(_Parts):
    """Of parts with `lengths` elements each, or one."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.lengths = [1] * len(cseq) if lengths is None else list(lengths)
        super().__init__(cseq, dim)

    def _holds(self, value):
        parts = _functions.split(value, self.lengths, self.dim)
        return _ops.function('cat')([one.check(part) for one, part in zip(self.cseq, parts)], self.dim)


class stack(_Parts):
    def _holds(self, value):
        parts = _functions.unbind(value, self.dim)
        return _ops.function('stack')([one.check(part) for one, part in zip(self.cseq, parts)], self.dim)


real_vector = independent(real, 1)


def _is_simplex(value):
    tolerance = max(1e-6, _dtypes.finfo(value.dtype).eps)
    return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < tolerance)


def _is_lower_triangular(value):
    return (value.tril() == value).flatten(-2).all(-1)


def _is_lower_cholesky(value):
    return _is_lower_triangular(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


def _is_corr_cholesky(value):
    tolerance = 10 * value.shape[-1] * _dtypes.finfo(value.dtype).eps
    rows = ((value ** 2).sum(-1).sqrt() - 1).abs() < tolerance
    return _is_lower_cholesky(value) & rows.all(-1)


def _is_square(value):
    fits = value.shape[-1] == value.shape[-2]
    return _functions.full(value.shape[:-2], fits, dtype='bool', device=value.device)


def _is_symmetric(value):
    return _is_square(value) & ((value - value.mT).abs() < 1e-6).flatten(-2).all(-1)


def _is_positive_semidefinite(value):
    return _is_symmetric(value) & (linalg.eigvalsh(value) >= 0).all(-1)


def _is_positive_definite(value):
    return _is_symmetric(value) & (linalg.cholesky_ex(value)[1] == 0)


simplex = Constraint('0 or more, with a sum of 1 along the last dimension', _is_simplex, 1)
one_hot = Constraint('one 1 and zeros along the last dimension',
                     lambda value: boolean.check(value).all(-1) & (value.sum(-1) == 1), 1, True)
lower_triangular = Constraint('a lower triangular matrix', _is_lower_triangular, 2)
lower_cholesky = Constraint('a lower triangular matrix with a positive diagonal', _is_lower_cholesky, 2)
corr_cholesky = Constraint('a lower triangular matrix with a positive diagonal and rows of length 1',
                           _is_corr_cholesky, 2)
square = Constraint('a square matrix', _is_square, 2)
symmetric = Constraint('a symmetric matrix', _is_symmetric, 2)
positive_semidefinite = Constraint('a symmetric positive semidefinite matrix', _is_positive_semidefinite, 2)
positive_definite = Constraint('a symmetric positive definite matrix', _is_positive_definite, 2)
