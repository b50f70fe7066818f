"""koine.distributions: samples against the distributions' own functions and moments; conftest.py seeds them."""
import math

import numpy
import pytest

import koine
from koine import distributions as D

nan = math.nan
N = 20000


def require(samples, cdf):
    """The largest distance of the samples' own cdf (Kolmogorov and Smirnov): above 2 in 0.07 % of cases."""
    found = numpy.sort(cdf(samples).numpy(), 0)
    expected = (numpy.arange(N) + 0.5).reshape((-1,) + (1,) * (found.ndim - 1)) / N
    assert (numpy.abs(found - expected).max(0) * math.sqrt(N) < 2).all()


@pytest.mark.parametrize('made', [
    D.Normal(koine.tensor([0.0, 1.0]), koine.tensor([1.0, 3.0])), D.LogNormal(koine.tensor([0.0, 1.0]), 0.5),
    D.Laplace(koine.tensor([0.0, 1.0]), koine.tensor([1.0, 3.0])), D.Uniform(koine.tensor([0.0, -1.0]), 3.0),
    D.Exponential(koine.tensor([0.5, 3.0])), D.Gamma(koine.tensor([0.3, 1.0, 1.5, 30.0]), 2.0),
    D.Cauchy(koine.tensor([0.0, 1.0]), 3.0), D.Gumbel(koine.tensor([0.0, 1.0]), 3.0),
    D.HalfNormal(koine.tensor([0.5, 3.0])), D.HalfCauchy(koine.tensor([0.5, 3.0])),
    D.Chi2(koine.tensor([0.5, 3.0, 50.0])), D.InverseGamma(koine.tensor([0.3, 3.0]), 2.0),
    D.Weibull(2.0, koine.tensor([0.3, 3.0])), D.Pareto(2.0, koine.tensor([0.3, 3.0])),
    D.GeneralizedPareto(1.0, 2.0, koine.tensor([-0.5, 0.0, 0.5])),
    D.Kumaraswamy(koine.tensor([0.3, 3.0]), koine.tensor([2.0, 0.5])),
    D.ContinuousBernoulli(koine.tensor([0.01, 0.4999, 0.8])),
    D.MixtureSameFamily(D.Categorical(koine.tensor([0.3, 0.7])), D.Normal(koine.tensor([-1.0, 2.0]), 1.0))], ids=repr)
def test_samples_have_the_distribution(made):
    require(made.sample((N,)), made.cdf)


def test_far_samples_are_finite():
    for made in D.StudentT(0.2), D.Weibull(1.0, 0.1), D.Pareto(1.0, 0.2), D.HalfCauchy(1.0), D.Gumbel(0.0, 1.0):
        samples = made.sample((N,))
        assert koine.isfinite(samples).all() and koine.isfinite(made.log_prob(samples)).all()


def test_samples_have_a_distribution_whose_cdf_is_a_formula_for_some_parameters():
    require(D.StudentT(1.0, 2.0, 3.0).sample((N,)), D.Cauchy(2.0, 3.0).cdf)
    require(D.StudentT(2.0).sample((N,)), lambda x: 0.5 + 0.5 * x / (2 + x ** 2).sqrt())
    require(D.FisherSnedecor(2.0, 0.5).sample((N,)), lambda x: 1 - (1 + 4 * x) ** -0.25)
    require(D.FisherSnedecor(3.0, 2.0).sample((N,)), lambda x: (3 * x / (3 * x + 2)) ** 1.5)
    for loc, concentration in (0.5, 0.01), (3.0, 2.0), (-1.0, 1e4):
        made = D.VonMises(loc, concentration)
        samples = made.sample((N,))
        assert ((-math.pi <= samples) & (samples < math.pi)).all()
        width = min(math.pi, 10 / math.sqrt(concentration))
        angles = numpy.linspace(-width, width, 4001)
        density = made.log_prob(koine.tensor(angles + loc, dtype='float32')).exp().numpy()
        from_loc = (samples.numpy() - loc + math.pi) % (2 * math.pi) - math.pi
        cdf = numpy.cumsum(density) / density.sum()
        require(samples, lambda _: koine.tensor(numpy.interp(from_loc, angles, cdf)))


@pytest.mark.parametrize('made', [
    D.Bernoulli(koine.tensor([0.2, 0.7])), D.Binomial(10, koine.tensor([0.2, 0.7])),
    D.Poisson(koine.tensor([0.3, 7.0])), D.Beta(koine.tensor([0.5, 2.0, 0.05]), koine.tensor([0.5, 3.0, 0.1])),
    D.Dirichlet(koine.tensor([0.5, 2.0, 0.3])), D.OneHotCategorical(koine.tensor([[0.1, 0.2, 0.7]])),
    D.StudentT(koine.tensor([9.0, 30.0]), 2.0, 3.0), D.Geometric(koine.tensor([0.3, 0.9])),
    D.NegativeBinomial(koine.tensor([2.0, 3.5, 0.0]), koine.tensor([0.3, 0.8, 0.5])),
    D.Multinomial(7, koine.tensor([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])),
    D.MixtureSameFamily(D.Categorical(koine.tensor([0.3, 0.7])),
                        D.Independent(D.Normal(koine.tensor([[0.0, 1.0], [2.0, 9.0]]), 1.0), 1))], ids=repr)
def test_samples_have_the_moments(made):
    samples = made.sample((N,)).numpy().astype('float64')
    mean, variance = made.mean.numpy(), made.variance.numpy()
    assert (numpy.abs(samples.mean(0) - mean) <= 4 * numpy.sqrt(variance / N)).all()
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
