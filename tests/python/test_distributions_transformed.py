"""koine.distributions.TransformedDistribution: the numbers are PyTorch's."""
import math

import numpy
import pytest

import koine
from koine import distributions as D
from koine.distributions import transforms as t


def tensor(values, **options):
    return koine.tensor(values, dtype='float64', **options)


def normal(**options):
    return D.Normal(tensor([0.5, -1.0], **options), tensor([2.0, 0.3], **options))


# (base, transforms, a value, log_prob, cdf or None, icdf of 0.2 and 0.7)
ROWS = {
    'exp': (normal, t.ExpTransform(), [1.0, 0.4], [-1.6433357138, 1.1623958832], [0.4012936743, 0.6098894419],
            [0.3062840109, 0.4305551544]),
    'tanh': (normal, [t.TanhTransform(cache_size=1)], [0.5, -0.9], [-1.3247075283, 0.7069252205],
             [0.5098341567, 0.0577362155], [-0.8284712988, -0.6872258781]),
    'sigmoid, affine': (normal, [t.SigmoidTransform(), t.AffineTransform(1.0, -2.0)], [0.5, -0.3],
                        [-0.9507016169, -13.4902187486], [0.7879435415, 3.39e-08], [-0.7974691065, 0.5216908637]),
    'affine': (lambda: D.Normal(tensor(0.0), tensor(1.0)), t.AffineTransform(tensor([1, 2]), tensor([3, -4])),
               [0.5, -0.3], [-2.0314397108, -2.4705453943], [0.4338161674, 0.2826456485],
               [-1.5248637007, 4.0976020508]),
    'vectors': (normal, t.AffineTransform(1.0, tensor([3, -4]), event_dim=1), [[0.5, -0.3], [1, 2]],
                [-13.6209858702, -6.9682080924], None, None),
    'independent': (lambda: D.Independent(normal(), 1), [t.TanhTransform(), t.AffineTransform(0.0, 2.0)],
                    [[0.5, -0.3], [1, -1]], [-6.6366534876, -3.2667574988], None, None)}


@pytest.mark.parametrize('name', ROWS)
def test_values(name):
    base, transforms, value, log_prob, cdf, icdf = ROWS[name]
    made, value = D.TransformedDistribution(base(), transforms), tensor(value)
    assert made.batch_shape + made.event_shape == (2,) and made.event_shape == ((2,) if cdf is None else ())
    numpy.testing.assert_allclose(made.log_prob(value).numpy(), log_prob, rtol=1e-9)
    if cdf is None:
        with pytest.raises(NotImplementedError):
            made.cdf(value)
    else:
        numpy.testing.assert_allclose(made.cdf(value).numpy(), cdf, rtol=1e-9, atol=1e-10)
        numpy.testing.assert_allclose(made.icdf(tensor([0.2, 0.7])).numpy(), icdf, rtol=1e-9)
    assert made.has_rsample and made.sample((3,)).shape == (3, 2) and made.support.check(made.sample()).all()
    wide = made.expand((4,) + made.batch_shape)
    assert wide.sample().shape == (4, 2) and wide.log_prob(wide.sample()).shape == (4,) + made.batch_shape


@pytest.mark.parametrize('transform', [t.ExpTransform(), t.SigmoidTransform(), t.TanhTransform(),
                                       t.AffineTransform(1.0, -2.0), t.AffineTransform(tensor(1), tensor(3))], ids=repr)
def test_transforms(transform):
    x = tensor([-1.5, 0.3, 2.0], requires_grad=True)
    y = transform(x)
    numpy.testing.assert_allclose(transform.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-12)
    slope, = koine.autograd.grad(y.sum(), x, retain_graph=True)
    logs = transform.log_abs_det_jacobian(x, y)
    numpy.testing.assert_allclose(logs.detach().numpy(), numpy.log(numpy.abs(slope.numpy())), rtol=1e-12, atol=1e-12)
    sign = transform.sign.item() if hasattr(transform.sign, 'item') else transform.sign
    assert (numpy.sign(slope.numpy()) == sign).all()


@pytest.mark.parametrize('base, transforms, value, batch, event, log_prob', [
    (lambda: D.Normal(tensor([[0.5, -1], [0, 1]]), 1.0), [t.AffineTransform(1.0, 2.0), t.StickBreakingTransform()],
     [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], (2,), (3,), [-0.6541551935, -2.404748938]),
    (lambda: D.Normal(tensor([[0.5, -1, 0, 0, 0, 1]]), 1.0), [t.ReshapeTransform((6,), (2, 3)), t.ExpTransform()],
     [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], (1,), (2, 3), [-5.714590861]),
    (lambda: D.Normal(tensor([0.5, -1, 0]), 1.0), t.CorrCholeskyTransform(),
     [[1, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]], (), (3, 3), -2.623120818)], ids=['stick', 'reshape', 'correlations'])
def test_transforms_that_change_the_shape(base, transforms, value, batch, event, log_prob):
    made = D.TransformedDistribution(base(), transforms)
    assert made.batch_shape == batch and made.event_shape == event
    numpy.testing.assert_allclose(made.log_prob(tensor(value)).numpy(), log_prob, rtol=2e-9)
    samples = made.expand((4,) + batch).sample((3,))
    assert samples.shape == (3, 4) + batch + event and made.support.check(samples).shape == (3, 4) + batch
    assert made.support.check(samples).all() and made.log_prob(samples).shape == (3, 4) + batch


def test_uniform_by_the_inverse_cdf():
    made = D.TransformedDistribution(D.Uniform(tensor(0), tensor(1)),
                                     t.CumulativeDistributionTransform(D.Normal(tensor(1), tensor(2))).inv)
    value = tensor([0.5, 3])
    numpy.testing.assert_allclose(made.log_prob(value).numpy(), D.Normal(1.0, 2.0).log_prob(value).numpy())


SIMPLEX_AND_RELAXED = [
    (lambda: D.LogisticNormal(tensor([[0.5, -1], [0, 1]]), tensor([[1, 0.3], [2, 1]])),
     [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], (3,), [0.8314559249, -2.726971716]),
    (lambda: D.LogisticNormal(tensor(0.5), tensor(1)), [0.2, 0.8], (2,), -0.8654102779),
    (lambda: D.RelaxedBernoulli(tensor(0.7), tensor([0.3, 0.9])),
     [[0.2, 0.8], [0.001, 0.999]], (), [[0.08582564215, -0.2651886247], [2.527895537, 3.776384033]]),
    (lambda: D.RelaxedBernoulli(2.0, logits=tensor([0.3, 0.9])), [0.2, 0.8], (), [-0.6373825175, 0.3671479087]),
    (lambda: D.RelaxedOneHotCategorical(tensor(0.7), tensor([[0.3, 0.2, 0.5], [0.1, 0.2, 0.3]])),
     [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], (3,), [0.06579012208, 1.219445607]),
    (lambda: D.RelaxedOneHotCategorical(2.0, logits=tensor([0.3, 0.2, 0.5])),
     [[0.2, 0.3, 0.5], [0.001, 0.001, 0.998]], (3,), [1.637028313, 0.2522556381])]


@pytest.mark.parametrize('make, value, event, log_prob', SIMPLEX_AND_RELAXED)
def test_distributions_that_are_transformed(make, value, event, log_prob):
    made = make()
    numpy.testing.assert_allclose(made.log_prob(tensor(value)).numpy(), log_prob, rtol=2e-9)
    batch = made.batch_shape
    wide = made.expand((4,) + batch)
    samples = wide.rsample((3,))
    assert type(wide) is type(made) and made.event_shape == event and samples.shape == (3, 4) + batch + event
    assert made.has_rsample and made.support.check(samples).all() and wide.log_prob(samples).shape == (3, 4) + batch
    assert type(made).__name__ + '(' in repr(made)


def test_gradients_of_distributions_that_are_transformed():
    logits, other = tensor([0.3, 0.2, -0.5], requires_grad=True), tensor([1.5, 0.5, 1.0], requires_grad=True)
    state = koine.get_rng_state()
    for kind in (lambda a, b: D.RelaxedBernoulli(b[0], logits=a), D.LogisticNormal,
                 lambda a, b: D.RelaxedOneHotCategorical(b[0], logits=a)):
        def drawn(a, b, kind=kind):
            koine.set_rng_state(state)
            return kind(a, b).rsample((2,))

        value = drawn(logits, other).detach()
        assert koine.autograd.gradcheck(drawn, [logits, other])
        assert koine.autograd.gradcheck(lambda a, b: kind(a, b).log_prob(value), [logits, other])


def test_samples_of_distributions_that_are_transformed():
    """The largest of a relaxed sample is that of Categorical; above 0.5 is 1; a stick's parts have the order of loc."""
    probs = koine.tensor([0.1, 0.2, 0.7])
    for temperature in (0.3, 2.0):
        samples = D.RelaxedOneHotCategorical(temperature, probs).sample((20000,)).numpy()
        numpy.testing.assert_allclose(numpy.bincount(samples.argmax(-1)) / 20000, probs.numpy(), atol=0.012)
        samples = D.RelaxedBernoulli(temperature, probs).sample((20000,)).numpy()
        numpy.testing.assert_allclose((samples > 0.5).mean(0), probs.numpy(), atol=0.012)
    samples = D.LogisticNormal(koine.tensor([0.5, -1.0]), koine.tensor([1.0, 0.5])).sample((20000,)).numpy()
    first = numpy.log(samples[:, 0] / (1 - samples[:, 0])) + math.log(2)
    second = numpy.log(samples[:, 1] / samples[:, 2])
    found = first.mean(), first.std(), second.mean(), second.std()
    numpy.testing.assert_allclose(found, [0.5, 1, -1, 0.5], atol=0.03)
    assert abs(numpy.corrcoef(first, second)[0, 1]) < 0.03


def test_divergences():
    p, q = [D.LogisticNormal(tensor([loc, 1]), tensor([1, scale])) for loc, scale in ((0.5, 2), (0.1, 3))]
    numpy.testing.assert_allclose(D.kl_divergence(p, q).item(), 0.2076873303, rtol=2e-9)
    with pytest.raises(NotImplementedError, match='no formula for different transforms'):
        D.kl_divergence(D.TransformedDistribution(normal(), t.AffineTransform(1.0, 2.0)),
                        D.TransformedDistribution(normal(), t.AffineTransform(1.0, 3.0)))


def test_gradients():
    loc, scale = tensor([0.5, -1.0], requires_grad=True), tensor([2.0, 0.3], requires_grad=True)
    made = D.TransformedDistribution(D.Normal(loc, scale), [t.TanhTransform(), t.AffineTransform(0.0, 2.0)])
    assert made.rsample().requires_grad and not made.sample().requires_grad
    value = tensor([0.5, -0.3])
    assert koine.autograd.gradcheck(lambda loc, scale: D.TransformedDistribution(
        D.Normal(loc, scale), [t.TanhTransform(), t.AffineTransform(0.0, 2.0)]).log_prob(value), [loc, scale])


def test_the_last_argument_is_kept():
    """Of tanh(30), which is 1 in float32, only the cache knows the argument."""
    far = D.Normal(koine.tensor(30.0), koine.tensor(0.1))
    kept = D.TransformedDistribution(far, t.TanhTransform(cache_size=1))
    for draw in (kept.rsample, kept.sample):
        action = draw()
        assert action.item() == 1 and 40 < kept.log_prob(action).item() < 70
    lost = D.TransformedDistribution(far, t.TanhTransform())
    assert not math.isfinite(lost.log_prob(lost.sample()).item())
    with pytest.raises(ValueError, match='TanhTransform: cache_size is 0 or 1, not 2'):
        t.TanhTransform(cache_size=2)


def test_errors():
    with pytest.raises(ValueError, match='the value must be greater than 0'):
        D.TransformedDistribution(normal(), t.ExpTransform()).log_prob(tensor([-1.0, 1.0]))
    with pytest.raises(TypeError, match='must be a Transform or a list of them, not function'):
        D.TransformedDistribution(normal(), [lambda x: x])
    with pytest.raises(NotImplementedError, match='TransformedDistribution has no mean'):
        D.TransformedDistribution(normal(), []).mean
