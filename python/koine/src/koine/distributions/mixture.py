"""Samples of one of several distributions of one class."""
from .. import _ops
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

op = _ops.function


class MixtureSameFamily(Distribution):
    """A number of `mixture_distribution`, a Categorical, chooses along the last dimension of the batch of
    `component_distribution`."""

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical) or not isinstance(component, Distribution):
            raise ValueError('MixtureSameFamily: the arguments must be a Categorical and a Distribution, not %s and %s'
                             % (type(mixture).__name__, type(component).__name__))
        count = mixture.param_shape[-1]
        if component.batch_shape[-1:] != (count,) or mixture.batch_shape not in ((), component.batch_shape[:-1]):
            raise ValueError('MixtureSameFamily: the batch shape of the components, %s, must be that of the mixture, '
                             '%s, and its %d categories' % (component.batch_shape, mixture.batch_shape, count))
        self._mixture_distribution, self._component_distribution = mixture, component
        super().__init__(component.batch_shape[:-1], component.event_shape, validate_args)

    def expand(self, batch_shape):
        batch_shape = tuple(batch_shape)
        component = self._component_distribution
        return MixtureSameFamily(self._mixture_distribution.expand(batch_shape),
                                 component.expand(batch_shape + component.batch_shape[-1:]), self._validate_args)

    @property
    def mixture_distribution(self):
        return self._mixture_distribution

    @property
    def component_distribution(self):
        return self._component_distribution

    @property
    def support(self):
        of_one = self._component_distribution.support
        return constraints.Constraint(of_one.text, lambda value: of_one.check(self._beside(value)).all(-1),
                                      of_one.event_dim, of_one.is_discrete)

    @property
    def _dim(self):
        """That of the components, from the end."""
        return -1 - len(self._event_shape)

    def _beside(self, value):
        """With the dimension of the components."""
        return value.unsqueeze(self._dim)

    @property
    def _weights(self):
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    @property
    def mean(self):
        return (self._weights * self._component_distribution.mean).sum(self._dim)

    @property
    def variance(self):
        component, weights = self._component_distribution, self._weights
        between = (weights * (component.mean - self._beside(self.mean)) ** 2).sum(self._dim)
        return (weights * component.variance).sum(self._dim) + between

    def sample(self, sample_shape=()):
        samples = self._component_distribution.sample(sample_shape)
        chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        index = chosen.reshape(chosen.shape + (1,) * (1 + len(self._event_shape)))
        index = index.expand(chosen.shape + (1,) + self._event_shape)
        return op('gather')(samples, self._dim, index).squeeze(self._dim)

    def log_prob(self, value):
        self._validate_sample(value)
        mixture = self._mixture_distribution.logits
        return (self._component_distribution.log_prob(self._beside(value))
                + mixture - mixture.logsumexp(-1, keepdim=True)).logsumexp(-1)

    def cdf(self, value):
        self._validate_sample(value)
        return (self._component_distribution.cdf(self._beside(value)) * self._mixture_distribution.probs).sum(-1)

    def __repr__(self):
        return 'MixtureSameFamily(%r, %r)' % (self._mixture_distribution, self._component_distribution)
