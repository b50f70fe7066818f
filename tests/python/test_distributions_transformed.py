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
