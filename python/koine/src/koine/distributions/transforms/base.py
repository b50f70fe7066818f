"""The base of all transforms, their inverses, and several in a row."""
from ..._tensor import Tensor
from .. import constraints


class Transform:
    """A subclass has _call(x), _inverse(y), log_abs_det_jacobian(x, y), the constraints `domain` and `codomain` of its
    arguments and results, `bijective`, and, if it is elementwise, `sign`, that of its derivative. With cache_size=1
    the inverse of the last result is its argument itself, where computing it would lose digits.

    Parameters of which two of the class must be the same to be equal are attributes that `_parameters` names."""

    domain = codomain = constraints.real
    bijective = True
    _parameters = ()

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError('%s: cache_size is 0 or 1, not %s' % (type(self).__name__, cache_size))
        self._cache_size, self._last = cache_size, (None, None)

    @property
    def event_dim(self):
        """Of how many last dimensions together it is a function."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError('%s has no event_dim: use that of its domain, %d, or of its codomain, %d'
                             % (type(self).__name__, self.domain.event_dim, self.codomain.event_dim))
        return self.domain.event_dim

    @property
    def sign(self):
        raise NotImplementedError('%s has no sign' % type(self).__name__)

    @property
    def inv(self):
        return _InverseTransform(self)

    def __call__(self, x):
        last, y = self._last
        if last is not None and x is last:
            return y
        return self._kept(x, self._call(x))[1]

    def _invert(self, y):
        x, last = self._last
        if last is not None and y is last:
            return x
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x, y):
        if self._cache_size:
            self._last = x, y
        return x, y

    def _inverse(self, y):
        raise NotImplementedError('%s has no inverse' % type(self).__name__)

    def log_abs_det_jacobian(self, x, y):
        """log |dy / dx|, where y = self(x)."""
        raise NotImplementedError('%s has no log_abs_det_jacobian' % type(self).__name__)

    def forward_shape(self, shape):
        """That of results of arguments of a shape."""
        return shape

    def inverse_shape(self, shape):
        return shape

    def __eq__(self, other):
        return type(self) is type(other) and all(_equal(getattr(self, name), getattr(other, name))
                                                 for name in self._parameters)

    def __repr__(self):
        return type(self).__name__ + '()'


class _InverseTransform(Transform):
    """Has no cache of its own: it is that of the transform."""
    _parameters = ('_transform',)

    def __init__(self, transform):
        super().__init__()
        self._transform = transform
        self.domain, self.codomain, self.bijective = transform.codomain, transform.domain, transform.bijective
        self.forward_shape, self.inverse_shape = transform.inverse_shape, transform.forward_shape

    @property
    def sign(self):
        return self._transform.sign

    @property
    def inv(self):
        return self._transform

    def __call__(self, x):
        return self._transform._invert(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._transform.log_abs_det_jacobian(y, x)

    def __repr__(self):
        return repr(self._transform) + '.inv'


class ComposeTransform(Transform):
    """`parts`, each of the result of the one before it."""
    _parameters = ('parts',)

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = list(parts)
        if not self.parts:
            return
        # Each part's dimensions, as seen from the first argument and from the last result.
        before = after = 0
        for part in reversed(self.parts):
            before = max(before + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        for part in self.parts:
            after = max(after + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        self.domain = widened(self.parts[0].domain, before)
        self.codomain = widened(self.parts[-1].codomain, after)

    @property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @property
    def sign(self):
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return x.new_zeros(x.shape)
        between, logs, dims = [x], 0, self.domain.event_dim
        for part in self.parts[:-1]:
            between.append(part(between[-1]))
        for part, before, after in zip(self.parts, between, between[1:] + [y]):
            logs = logs + sum_rightmost(part.log_abs_det_jacobian(before, after), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return logs

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return 'ComposeTransform(%s)' % self.parts


identity_transform = ComposeTransform([])


def widened(constraint, event_dim):
    """Of at least that many dimensions."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


def sum_rightmost(values, count):
    """Over the last `count` dimensions."""
    return values.flatten(values.ndim - count).sum(-1) if count else values


def _equal(one, other):
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return one is other or bool((one == other).all())
    return one == other
