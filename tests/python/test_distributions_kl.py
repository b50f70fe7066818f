"""koine.distributions.kl_divergence: numbers of PyTorch in float64, gradients."""
import math

import numpy
import pytest

import koine
from koine import distributions as D

inf = math.inf
N = 20000


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


PAIRS = [
    (D.Normal, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4]), [0.8868528194, 12.56893207]),
    (D.LogNormal, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4]), [0.8868528194, 12.56893207]),
    (D.Laplace, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4]), [0.3443143256, 4.288636548]),
    (D.Uniform, ([0.5, -1], [2, 0.3]), ([0.1, 1], [3, 4]), [0.6592456289, inf]),
    (D.Exponential, ([0.5, 3],), ([1.5, 2],), [0.9013877113, 0.07213177477]),
    (D.Bernoulli, ([0.5, 0.3],), ([0.7, 0.2],), [0.08717669357, 0.0281675576]),
    (D.Binomial, ([5, 6], [0.3, 0.8]), ([5, 5], [0.4, 0.5]), [0.1080042707, inf]),
    (D.Poisson, ([0.5, 3],), ([1.5, 2],), [0.4506938557, 0.2163953243]),
    (D.Categorical, ([[0.1, 0.2, 0.7], [2, 1, 0]],), ([[0.3, 0.3, 0.4], [2, 2, 1]],), [0.2007768011, 0.2797765636]),
    (D.OneHotCategorical, ([[0.1, 0.2, 0.7], [2, 1, 0]],), ([[0.3, 0, 0.4], [2, 2, 0]],), [inf, 0.05663301227]),
    (D.Gamma, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2]), [1.198119764, 0.1810989679]),
    (D.Beta, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2]), [0.6666666667, 0.1706307434]),
    (D.Dirichlet, ([2.5, 0.7, 1],), ([1.5, 0.9, 2],), 0.9191408252),
    (D.Cauchy, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4]), [0.135404637, 2.235821877]),
    (D.Gumbel, ([0.5, -1], [2, 0.3]), ([0.1, 1], [1, 0.4]), [0.6247085764, 130.5443512]),
    (D.HalfNormal, ([2, 0.3],), ([1, 0.4],), [0.8068528194, 0.06893207245]),
    (D.HalfCauchy, ([2, 0.3],), ([1, 0.4],), [0.1177830357, 0.0206192872]),
    (D.Chi2, ([2.5, 0.7],), ([1.5, 0.9],), [0.1878260212, 0.03961296531]),
    (D.InverseGamma, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2]), [1.198119764, 0.1810989679]),
    (D.Pareto, ([2.5, 0.7], [1.5, 3]), ([1.5, 0.9], [2.5, 2]), [1.432905102, inf]),
    (D.Geometric, ([0.5, 0.3],), ([0.7, 0.2],), [0.1743533871, 0.09389185865]),
    (D.ContinuousBernoulli, ([0.5, 0.3],), ([0.7, 0.2],), [0.02973612325, 0.01148489716]),
    (D.MultivariateNormal, ([[1, 2, 3], [0, 0, 0]], [[2, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1]]),
     ([0, 1, 1], [[1, 0.2, 0], [0.2, 1, 0], [0, 0, 2]]), None)]


@pytest.mark.parametrize('kind, first, second, expected', PAIRS, ids=[row[0].__name__ for row in PAIRS])
def test_divergences(kind, first, second, expected):
    p, q = kind(*map(tensor, first)), kind(*map(tensor, second))
    found = D.kl_divergence(p, q)
    if expected is None:  # as an average
        x = p.sample((N,))
        expected = (p.log_prob(x) - q.log_prob(x)).mean(0).numpy()
        numpy.testing.assert_allclose(found.numpy(), expected, rtol=0.05)
    else:
        numpy.testing.assert_allclose(found.numpy(), expected, rtol=2e-9)
    numpy.testing.assert_allclose(D.kl_divergence(p, p).numpy(), numpy.zeros(found.shape), atol=1e-12)
    if kind not in (D.Uniform, D.Binomial, D.OneHotCategorical, D.MultivariateNormal, D.Categorical, D.Pareto):
        inputs = [tensor(one, requires_grad=True) for one in first + second]
        count = len(first)
        assert koine.autograd.gradcheck(lambda *given: D.kl_divergence(
            kind(*given[:count], validate_args=False), kind(*given[count:], validate_args=False)), inputs)


FIRST = dict(
    Normal=([0.5, 0.2], [2, 0.3]), Laplace=([0.5, 0.2], [2, 0.3]), Gumbel=([0.5, 0.2], [2, 0.3]),
    Exponential=([0.5, 3],), Gamma=([2.5, 0.7], [1.5, 3]), Beta=([2.5, 0.7], [1.5, 3]),
    ContinuousBernoulli=([0.3, 0.4999],), Bernoulli=([0.5, 0.2],), Pareto=([0.5, 1.2], [3.5, 1.5]),
    Uniform=([0.4, -1], [0.9, 0.3]), Poisson=([0.5, 3],))
SECOND = dict(
    Normal=([0.1, 1], [1, 0.4]), Laplace=([0.1, 1], [1, 0.4]), Gumbel=([0.1, 1], [1, 0.4]), Exponential=([1.5, 2],),
    Gamma=([1.5, 0.9], [2.5, 2]), Beta=([1.5, 0.9], [2.5, 2]), ContinuousBernoulli=([0.9, 0.2],),
    Bernoulli=([0.4, 0.9],), Pareto=([0.4, 1.3], [0.7, 2]),
    Uniform=([0.1, -2], [3, 4]), Poisson=([1.5, 2],), Binomial=([2, 3], [0.3, 0.9]))
TWO_CLASSES = {
    ('Normal', 'Laplace'): [0.2086400102, 1.563663177], ('Normal', 'Gumbel'): [3.240946711, 6.657652441],
    ('Laplace', 'Normal'): [2.612644172, 2.075973425], ('Gumbel', 'Normal'): [3.146572201, 1.319925441],
    ('Exponential', 'Normal'): [3.030791353, 1.837371201], ('Exponential', 'Gumbel'): [0.5752431255, 4.160651596],
    ('Exponential', 'Gamma'): [1.753668726, 0.04023993721], ('Gamma', 'Normal'): [1.37723351, 2.586261021],
    ('Gamma', 'Gumbel'): [0.5503660816, 5.640957656], ('Gamma', 'Exponential'): [0.7700520905, 0.2772715944],
    ('Beta', 'Normal'): [1.268791981, 2.860532151], ('Beta', 'Exponential'): [0.7206383394, 0.3867038168],
    ('Beta', 'Gamma'): [0.5323656259, 0.2836770653], ('Beta', 'ContinuousBernoulli'): [0.1075846202, 0.3494281927],
    ('Beta', 'Uniform'): [inf, 2.493232088], ('ContinuousBernoulli', 'Normal'): [1.043060762, 1.044418643],
    ('ContinuousBernoulli', 'Exponential'): [0.2692548458, 0.3067861594],
    ('ContinuousBernoulli', 'Uniform'): [inf, 1.791759476], ('Pareto', 'Normal'): [1.805801063, inf],
    ('Pareto', 'Exponential'): [1.304730755, 5.063329704], ('Pareto', 'Gamma'): [1.118693975, 5.283919484],
    ('Uniform', 'Normal'): [1.77375238, 5.875700204], ('Uniform', 'Gumbel'): [1.826125694, 39.34128544],
    ('Uniform', 'Exponential'): [1.262682072, inf], ('Uniform', 'Gamma'): [1.051237016, inf],
    ('Uniform', 'Beta'): [1.02230711, inf], ('Uniform', 'ContinuousBernoulli'): [0.5571977388, inf],
    ('Uniform', 'Pareto'): [0.9149778542, inf], ('Bernoulli', 'Poisson'): [0.6041202654, 1.36096814]}
INFINITE = dict(
    Normal='Exponential Gamma Beta ContinuousBernoulli Pareto Uniform',
    Laplace='Exponential Gamma Beta ContinuousBernoulli Pareto Uniform',
    Gumbel='Exponential Gamma Beta ContinuousBernoulli Pareto Uniform',
    Exponential='Beta ContinuousBernoulli Pareto Uniform', Gamma='Beta ContinuousBernoulli Pareto Uniform',
    Beta='Pareto', ContinuousBernoulli='Pareto', Pareto='Beta ContinuousBernoulli Uniform',
    Poisson='Bernoulli Binomial')


@pytest.mark.parametrize('first, second', TWO_CLASSES, ids=' '.join)
def test_divergences_of_two_classes(first, second):
    p, q = getattr(D, first), getattr(D, second)
    inputs = [tensor(one, requires_grad=True) for one in FIRST[first] + SECOND[second]]
    count, expected = len(FIRST[first]), TWO_CLASSES[first, second]

    def divergence(*given):
        return D.kl_divergence(p(*given[:count], validate_args=False), q(*given[count:], validate_args=False))

    numpy.testing.assert_allclose(divergence(*inputs).detach().numpy(), expected, rtol=2e-9)
    if inf not in expected:
        assert koine.autograd.gradcheck(divergence, inputs)


@pytest.mark.parametrize('first', INFINITE)
def test_infinite_divergences(first):
    p = getattr(D, first)(*map(tensor, FIRST[first]))
    for second in INFINITE[first].split():
        q = getattr(D, second)(*map(tensor, SECOND[second]))
        assert D.kl_divergence(p, q).tolist() == [inf, inf]


def test_divergences_of_other_pairs():
    p, q = D.Normal(tensor([0.0, 1.0]), tensor([1.0, 2.0])), D.Normal(tensor([1.0, 1.0]), tensor([1.0, 1.0]))
    of_both = D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    assert of_both.item() == pytest.approx(D.kl_divergence(p, q).sum().item())
    with pytest.raises(NotImplementedError, match='no formula for Normal and StudentT: register_kl adds one'):
        D.kl_divergence(p, D.StudentT(1.0))

    class Mine(D.Normal):
        pass

    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 0

    @D.register_kl(Mine, D.Normal)
    def _mine(p, q):
        return 'mine'

    assert D.kl_divergence(Mine(0.0, 1.0), q) == 'mine' != D.kl_divergence(q, Mine(0.0, 1.0))
