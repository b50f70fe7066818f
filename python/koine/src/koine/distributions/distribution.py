"""The base of all distributions, and what they share."""
import copy
import functools

from .. import _functions
from .._dtypes import finfo
from .._tensor import Size, Tensor
from ..autograd import enable_grad, no_grad


class Distribution:
    """`batch_shape` is that of independent distributions, `event_shape` that of one sample of each.

    A subclass has the dict `arg_constraints` of its parameters, which are attributes, the constraint `support` of its
    samples, and of the methods below those that it can compute."""

    has_rsample = False
    has_enumerate_support = False
    arg_constraints = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        Distribution._validate_args = bool(value)

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in self.__dict__:
                    self._require(name, constraint, self.__dict__[name])

    def _require(self, name, constraint, value):
        value = value.detach()
        holds = constraint.check(value)
        if not holds.all():
            values = value.expand(holds.shape + value.shape[value.ndim - constraint.event_dim:])  # bounds are broadcast
            raise ValueError('%s: %s must be %s, but holds %s (validate_args=False skips the check)'
                             % (type(self).__name__, name, constraint.text, values[~holds]))

    # --- shapes ---

    @property
    def batch_shape(self):
        return Size(self._batch_shape)

    @property
    def event_shape(self):
        return Size(self._event_shape)

    def _extended_shape(self, sample_shape=()):
        return tuple(sample_shape) + self._batch_shape + self._event_shape

    def expand(self, batch_shape):
        """The same with parameters that are broadcast to another batch shape."""
        batch_shape = tuple(batch_shape)
        made = copy.copy(self)
        made._batch_shape = batch_shape
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None:
                made.__dict__[name] = value.expand(batch_shape + value.shape[value.ndim - constraint.event_dim:])
        return made

    # --- moments ---

    @property
    def support(self):
        raise self._missing('support')

    @property
    def mean(self):
        raise self._missing('mean')

    @property
    def mode(self):
        raise self._missing('mode')

    @property
    def variance(self):
        raise self._missing('variance')

    @property
    def stddev(self):
        return self.variance.sqrt()

    # --- samples ---

    def sample(self, sample_shape=()):
        """Of the shape sample_shape + batch_shape + event_shape, without a gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """The same with gradients of the parameters."""
        raise self._missing('rsample')

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along a new first dimension."""
        raise self._missing('enumerate_support')

    # --- functions of values ---

    def log_prob(self, value):
        """The logarithm of the density or of the probability."""
        raise self._missing('log_prob')

    def cdf(self, value):
        raise self._missing('cdf')

    def icdf(self, value):
        """The value whose cdf is the given one."""
        raise self._missing('icdf')

    def entropy(self):
        raise self._missing('entropy')

    def perplexity(self):
        return self.entropy().exp()

    def _validate_sample(self, value):
        """For log_prob and cdf, unless validate_args is False."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise TypeError('%s: the value must be a koine.Tensor, not %s'
                            % (type(self).__name__, type(value).__name__))
        shape = self._batch_shape + self._event_shape
        inner = len(self._event_shape)
        fits = value.ndim >= inner and value.shape[value.ndim - inner:] == self._event_shape
        if not fits or any(a != b and 1 not in (a, b) for a, b in zip(value.shape[::-1], shape[::-1])):
            raise ValueError('%s: the value has the shape %s, which does not fit the batch shape %s and the event '
                             'shape %s' % (type(self).__name__, value.shape, self._batch_shape, self._event_shape))
        self._require('the value', self.support, value)

    def _missing(self, what):
        return NotImplementedError('%s has no %s' % (type(self).__name__, what))

    def __repr__(self):
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = [self.__dict__[name] for name in names]
        texts = [one.item() if one.numel() == 1 else 'shape %s' % (one.shape,) for one in values]
        return '%s(%s)' % (type(self).__name__, ', '.join('%s: %s' % pair for pair in zip(names, texts)))


class Symmetric(Distribution):
    """Distributions that are symmetric about `loc`."""

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc


# --- parameters -------------------------------------------------------------------------------------------------------


def broadcast(*values):
    """Numbers and tensors as tensors of one shape. Those that have it stay themselves: an operation recorded here would
    be freed by the first backward pass of a distribution that is used for several."""
    like = next((one for one in values if isinstance(one, Tensor)), None)
    options = {'dtype': 'float32'} if like is None else {'dtype': like.dtype, 'device': like.device}
    values = [one if isinstance(one, Tensor) else _functions.full((), one, **options) for one in values]
    shape = _functions.broadcast_tensors(*values)[0].shape
    return [expanded(one, shape) for one in values]


def expanded(value, shape):
    """Itself where it has the shape already, as above; of a tensor or of a distribution's batch."""
    known = value.shape if isinstance(value, Tensor) else value.batch_shape
    return value if known == tuple(shape) else value.expand(shape)


def lazy(function):
    """A property that is computed once, with its gradients wherever that happens first."""
    return functools.cached_property(enable_grad()(function))


def clamped(probs):
    """Without 0 and 1, whose logarithms are infinite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def exactly_one(kind, **given):
    """(name, value) of the one parameter that is given, of which the others follow."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) != 1:
        raise ValueError('%s: exactly one of %s must be given' % (kind, ' and '.join(given)))
    return found[0]


def require_dims(kind, name, value, count):
    """Checks that it is a tensor with at least that many dimensions."""
    if not isinstance(value, Tensor):
        raise TypeError('%s: %s must be a koine.Tensor, not %s' % (kind, name, type(value).__name__))
    if value.ndim < count:
        raise ValueError('%s: %s must have at least %d dimension%s, not the shape %s'
                         % (kind, name, count, 's' if count > 1 else '', value.shape))


def positive_values(values):
    """Deviates that are too small for the dtype are its smallest number instead of 0."""
    return values.clamp(min=finfo(values.dtype).tiny)
