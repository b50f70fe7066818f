"""koine.distributions: errors, and loops in which they are used."""
import math

import numpy
import pytest

import koine
from koine import distributions as D

inf, nan = math.inf, math.nan


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


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
    (lambda: D.StudentT(0.0), ValueError, 'StudentT: df must be greater than 0, but holds'),
    (lambda: D.Pareto(2.0, 1.0).log_prob(koine.tensor(1.0)), ValueError, 'the value must be scale or more, but holds'),
    (lambda: D.GeneralizedPareto(0.0, 1.0, -0.5).log_prob(koine.tensor(3.0)), ValueError, 'from loc to loc - scale'),
    (lambda: D.Geometric(0.0), ValueError, 'Geometric: probs must be greater than 0 and at most 1, but holds'),
    (lambda: D.NegativeBinomial(2.0, 1.0), ValueError, 'probs must be from 0 to less than 1, but holds'),
    (lambda: D.Multinomial(2, koine.ones(2)).log_prob(koine.ones(2) * 2), ValueError, 'whole numbers with a sum of 2'),
    (lambda: D.Multinomial(koine.ones(2), koine.ones(2)), NotImplementedError, 'must be an int, not Tensor'),
    (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)), ValueError, 'a Categorical and a Dis'),
    (lambda: D.MixtureSameFamily(D.Categorical(koine.ones(2)), D.Normal(koine.zeros(3), 1.0)), ValueError,
     r'the batch shape of the components, \(3,\), must be that of the mixture, \(\), and its 2 categories'),
    (lambda: D.Poisson(1.0).rsample(), NotImplementedError, 'Poisson has no rsample'),
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
    for make in (lambda loc: D.Normal(loc, 1.0), lambda loc: D.MultivariateNormal(loc, scale_tril=koine.eye(2)),
                 lambda loc: D.LowRankMultivariateNormal(loc, koine.zeros(2, 1), koine.ones(2)),
                 lambda loc: D.TransformedDistribution(D.Normal(loc, 1.0), D.AffineTransform(0.0, 1.0))):
        loc = koine.zeros(2, requires_grad=True)
        made = make(loc)
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
