"""koine.distributions.ExponentialFamily: what follows from the log normalizer is what the formulas say."""
import numpy
import pytest

import koine
from koine import distributions as D


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


def close(found, expected):
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-10)


PAIRS = [
    (D.Normal, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4])), (D.Exponential, ([0.5, 3],), ([1.5, 2],)),
    (D.Bernoulli, ([0.5, 0.3],), ([0.7, 0.2],)), (D.Poisson, ([0.5, 3],), ([1.5, 2],)),
    (D.Gamma, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2])), (D.Chi2, ([2.5, 0.7],), ([1.5, 3],)),
    (D.Beta, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2])),
    (D.Dirichlet, ([[2.5, 0.7, 1], [1, 2, 3]],), ([[1.5, 0.9, 2], [1, 1, 1]],))]


@pytest.mark.parametrize('kind, first, second', PAIRS, ids=[row[0].__name__ for row in PAIRS])
def test_entropies_and_divergences(kind, first, second):
    p, q = kind(*map(tensor, first)), kind(*map(tensor, second))
    if kind is not D.Poisson:
        close(D.ExponentialFamily.entropy(p), p.entropy())
    close(D.kl._formulas[D.ExponentialFamily, D.ExponentialFamily](p, q), D.kl_divergence(p, q))


class Rayleigh(D.ExponentialFamily):
    """With the density x / scale**2 exp(-x**2 / (2 scale**2))."""
    arg_constraints = {'scale': D.constraints.positive}
    support = D.constraints.nonnegative

    def __init__(self, scale):
        self.scale = scale
        super().__init__(scale.shape)

    @property
    def _natural_params(self):
        return -0.5 / self.scale ** 2,

    def _log_normalizer(self, square):
        return -(-2 * square).log()

    @property
    def _mean_carrier_measure(self):
        """Of log x: x**2 / (2 scale**2) is an exponential deviate, whose logarithm's mean is minus Euler's constant."""
        return self.scale.log() + 0.5 * (numpy.log(2) - numpy.euler_gamma)


def test_a_family_of_ones_own():
    scale = tensor([0.5, 2], requires_grad=True)
    expected = 1 + (scale / numpy.sqrt(2)).log() + numpy.euler_gamma / 2
    close(Rayleigh(scale).entropy(), expected)
    slope, = koine.autograd.grad(Rayleigh(scale).entropy().sum(), scale)
    numpy.testing.assert_allclose(slope.numpy(), 1 / scale.detach().numpy())
    other = tensor([1, 1])
    ratio = (scale / other) ** 2
    close(D.kl_divergence(Rayleigh(scale), Rayleigh(other)), ratio - 1 - ratio.log())
    with koine.no_grad():
        close(Rayleigh(scale).entropy(), expected)


def test_errors():
    with pytest.raises(NotImplementedError, match='no formula for Rayleigh and Dirichlet: register_kl adds one'):
        D.kl_divergence(Rayleigh(tensor(1)), D.Dirichlet(tensor([1, 1])))

    class Empty(D.ExponentialFamily):
        pass

    with pytest.raises(NotImplementedError, match='Empty has no _natural_params'):
        Empty().entropy()
