"""koine.distributions: samples against the distributions' own functions and moments, divergences, errors, and loops in
which they are used."""
import math

import numpy
import pytest

import koine
from koine import distributions as D

inf, nan = math.inf, math.nan
N = 20000


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


@pytest.mark.parametrize('made', [
    D.Normal(koine.tensor([0.0, 1.0]), koine.tensor([1.0, 3.0])), D.LogNormal(koine.tensor([0.0, 1.0]), 0.5),
    D.Laplace(koine.tensor([0.0, 1.0]), koine.tensor([1.0, 3.0])), D.Uniform(koine.tensor([0.0, -1.0]), 3.0),
    D.Exponential(koine.tensor([0.5, 3.0])), D.Gamma(koine.tensor([0.3, 1.0, 1.5, 30.0]), 2.0)], ids=repr)
def test_samples_have_the_distribution(made):
    """The largest distance of the samples' own cdf (Kolmogorov and Smirnov): above 2 in 0.07 % of cases."""
    samples = made.sample((N,))
    found = numpy.sort(made.cdf(samples).numpy(), 0)
    expected = (numpy.arange(N) + 0.5).reshape(-1, 1) / N
    assert (numpy.abs(found - expected).max(0) * math.sqrt(N) < 2).all()


@pytest.mark.parametrize('made', [
    D.Bernoulli(koine.tensor([0.2, 0.7])), D.Binomial(10, koine.tensor([0.2, 0.7])),
    D.Poisson(koine.tensor([0.3, 7.0])), D.Beta(koine.tensor([0.5, 2.0, 0.05]), koine.tensor([0.5, 3.0, 0.1])),
    D.Dirichlet(koine.tensor([0.5, 2.0, 0.3])), D.OneHotCategorical(koine.tensor([[0.1, 0.2, 0.7]]))], ids=repr)
def test_samples_have_the_moments(made):
    samples = made.sample((N,)).numpy().astype('float64')
    mean, variance = made.mean.numpy(), made.variance.numpy()
    assert (numpy.abs(samples.mean(0) - mean) < 4 * numpy.sqrt(variance / N)).all()
    numpy.testing.assert_allclose(samples.var(0), variance, rtol=0.06)


def test_samples_of_categories_and_vectors():
    probs = koine.tensor([[0.1, 0.2, 0.7], [1.0, 0.0, 1.0]])
    samples = D.Categorical(probs).sample((N // 2, 2)).numpy().reshape(N, 2)
    for i, expected in enumerate([[0.1, 0.2, 0.7], [0.5, 0, 0.5]]):
        numpy.testing.assert_allclose(numpy.bincount(samples[:, i], minlength=3) / N, expected, atol=0.015)
    factor = koine.tensor([[1, 0, 0], [0.5, 2, 0], [-0.3, 0.2, 0.7]], dtype='float32')
    samples = D.MultivariateNormal(koine.tensor([1.0, 2.0, 3.0]), scale_tril=factor).sample((N,)).numpy()
    numpy.testing.assert_allclose(numpy.cov(samples.T), (factor @ factor.T).numpy(), atol=0.15)
    numpy.testing.assert_allclose(samples.mean(0), [1, 2, 3], atol=0.06)
    koine.manual_seed(3)
    first = D.Gamma(2.0, 1.0).sample((5,))
    koine.manual_seed(3)
    assert D.Gamma(2.0, 1.0).sample((5,)).tolist() == first.tolist()


def test_gamma_deviates_of_what_is_not_a_number():
    made = D.Gamma(koine.tensor([nan, 1.0]), 1.0, validate_args=False)
    assert koine.isnan(made.sample()).tolist() == [True, False]
    assert (D.Gamma(koine.full((100,), 1e-4), 1.0).sample() > 0).all()
    assert koine.isfinite(D.Dirichlet(koine.full((100, 3), 1e-4)).sample()).all()


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
    if kind not in (D.Uniform, D.Binomial, D.OneHotCategorical, D.MultivariateNormal, D.Categorical):
        inputs = [tensor(one, requires_grad=True) for one in first + second]
        count = len(first)
        assert koine.autograd.gradcheck(lambda *given: D.kl_divergence(
            kind(*given[:count], validate_args=False), kind(*given[count:], validate_args=False)), inputs)


def test_divergences_of_other_pairs():
    p, q = D.Normal(tensor([0.0, 1.0]), tensor([1.0, 2.0])), D.Normal(tensor([1.0, 1.0]), tensor([1.0, 1.0]))
    of_both = D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    assert of_both.item() == pytest.approx(D.kl_divergence(p, q).sum().item())
    with pytest.raises(NotImplementedError, match='no formula for Normal and Gamma: register_kl adds one'):
        D.kl_divergence(p, D.Gamma(1.0, 1.0))

    class Mine(D.Normal):
        pass

    assert D.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0)).item() == 0

    @D.register_kl(Mine, D.Normal)
    def _mine(p, q):
        return 'mine'

    assert D.kl_divergence(Mine(0.0, 1.0), q) == 'mine' != D.kl_divergence(q, Mine(0.0, 1.0))


@pytest.mark.parametrize('call, error, words', [
    (lambda: D.Normal(0.0, -1.0), ValueError, r'Normal: scale must be greater than 0, but holds tensor\(\[-1.\]'),
    (lambda: D.Normal(koine.tensor([1.0, nan]), 1.0), ValueError, 'loc must be a real number, but holds .*nan'),
    (lambda: D.Uniform(koine.tensor([1.0, 5.0]), 4.0), ValueError, 'low must be less than high, but holds .*5'),
    (lambda: D.Categorical(koine.tensor([-0.1, 0.4])), ValueError, 'probs must be 0 or more, with a sum of 1'),
    (lambda: D.Categorical(koine.zeros(2)), ValueError, 'probs must be 0 or more, with a sum of 1'),
    (lambda: D.Categorical(), ValueError, 'Categorical: exactly one of probs and logits must be given'),
    (lambda: D.Bernoulli(0.5, 0.5), ValueError, 'Bernoulli: exactly one of probs and logits must be given'),
    (lambda: D.Categorical(0.5), TypeError, 'probs must be a koine.Tensor, not float'),
    (lambda: D.Categorical(koine.tensor(0.5)), ValueError, 'probs must have at least 1 dimension, not the shape'),
    (lambda: D.Categorical(koine.ones(2)).log_prob(koine.tensor(2)), ValueError, 'a whole number from 0 to 1, but'),
    (lambda: D.Bernoulli(1.5), ValueError, 'probs must be from 0 to 1, but holds'),
    (lambda: D.Binomial(2, 0.5).log_prob(koine.tensor(3.0)), ValueError, 'a whole number from 0 to total_count'),
    (lambda: D.Dirichlet(koine.tensor([1.0, 0.0])), ValueError, 'concentration must be greater than 0'),
    (lambda: D.OneHotCategorical(koine.ones(2)).log_prob(koine.ones(2)), ValueError, 'one 1 and zeros'),
    (lambda: D.MultivariateNormal(koine.zeros(2), koine.tensor([[1.0, 2.0], [2.0, 1.0]])), ValueError,
     'covariance_matrix must be a symmetric positive definite matrix'),
    (lambda: D.MultivariateNormal(koine.zeros(2), koine.tensor([[1.0, 0.5], [0.0, 1.0]])), ValueError, 'symmetric'),
    (lambda: D.MultivariateNormal(koine.zeros(2), scale_tril=koine.ones(2, 2)), ValueError, 'a lower triangular'),
    (lambda: D.MultivariateNormal(koine.zeros(2), scale_tril=koine.eye(3)), ValueError, 'does not fit the matrices of'),
    (lambda: D.Normal(0.0, 1.0).log_prob(2.0), TypeError, 'the value must be a koine.Tensor, not float'),
    (lambda: D.Normal(koine.zeros(2), 1.0).log_prob(koine.ones(3)), ValueError, r'\(3,\), which does not fit'),
    (lambda: D.LogNormal(0.0, 1.0).log_prob(koine.tensor(-1.0)), ValueError, 'the value must be greater than 0'),
    (lambda: D.Uniform(koine.zeros(2), 1.0).log_prob(koine.tensor(3.0)), ValueError, r'from low to high, .*\[3., 3.\]'),
    (lambda: D.Gamma(1.0, 1.0).rsample(), NotImplementedError, 'Gamma has no rsample'),
    (lambda: D.Poisson(1.0).entropy(), NotImplementedError, 'Poisson has no entropy'),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_validation_can_be_left_out():
    made = D.Normal(0.0, -1.0, validate_args=False)
    made.log_prob(koine.tensor(nan))
    assert D.Uniform(0.0, 1.0, validate_args=False).log_prob(koine.tensor([2.0, 0.5])).tolist() == [-inf, 0]
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_parameters_that_follow_keep_their_gradients():
    logits = tensor([0.1, 0.2, 0.7], requires_grad=True)
    made = D.Categorical(logits=logits)
    made.sample()  # computes the probabilities, unrecorded
    assert made.probs.requires_grad and not made.sample().requires_grad
    straight = D.OneHotCategoricalStraightThrough(logits=logits)
    slope, = koine.autograd.grad((straight.rsample() * tensor([1, 2, 3])).sum(), logits)
    assert numpy.abs(slope.numpy()).min() > 0 and straight.rsample().sum().item() == pytest.approx(1)


def test_a_distribution_that_is_used_for_several_passes():
    loc = koine.zeros(2, requires_grad=True)
    made = D.Normal(loc, 1.0)
    for _ in range(2):
        made.log_prob(koine.ones(2)).sum().backward()
    assert loc.grad.tolist() == [2, 2]


def test_reinforce():
    """A bandit: the policy learns which of three arms pays."""
    logits = koine.zeros(3, requires_grad=True)
    optimizer = koine.optim.SGD([logits], lr=0.5)
    for _ in range(100):
        m = D.Categorical(logits=logits)
        action = m.sample()
        reward = 1.0 if action.item() == 2 else 0.0
        optimizer.zero_grad()
        (-m.log_prob(action) * reward).backward()
        optimizer.step()
    assert D.Categorical(logits=logits).probs[2].item() > 0.9
    probs = koine.tensor([0.25, 0.75], requires_grad=True)
    m = D.Categorical(probs)
    (-m.log_prob(koine.tensor(1)) * 2).backward()
    numpy.testing.assert_allclose(probs.grad.numpy(), [2, 2 - 2 / 0.75], rtol=1e-5)


def test_evidence_lower_bound():
    """The posterior of a mean: as in a VAE, by samples with a gradient and a divergence."""
    data = 2 + koine.randn(50)
    loc, log_scale = koine.zeros(1, requires_grad=True), koine.zeros(1, requires_grad=True)
    optimizer = koine.optim.Adam([loc, log_scale], lr=0.05)
    prior = D.Normal(0.0, 10.0)
    for _ in range(300):
        posterior = D.Normal(loc, log_scale.exp())
        fits = D.Normal(posterior.rsample((8,)), 1.0).log_prob(data).sum(1).mean()
        loss = D.kl_divergence(posterior, prior).sum() - fits
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert abs(loc.item() - data.mean().item()) < 0.05
    assert log_scale.exp().item() == pytest.approx(1 / math.sqrt(50), rel=0.2)
