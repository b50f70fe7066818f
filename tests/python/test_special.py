"""koine.special. The numbers are PyTorch's, in float64."""
import numpy
import pytest

import koine
from koine import special

WIDE = [-8.875, -2.875, -0.375, 0.375, 1.625, 4.125, 11.125]
UNIT = [2**-66, 2**-10, 0.3125, 0.625, 1 - 2**-10]
POSITIVE = [0.01, 0.7, 3.0, 20.0]

# name: (inputs, values, derivatives)
VALUES = {
    'digamma': (WIDE, [-5.345956, -6.364476, 1.213958, -2.753999, 0.1472912, 1.290984, 2.363578],
                [67.28731, 67.09968, 10.51229, 8.161778, 0.8411832, 0.2741567, 0.09404839]),
    'erf': (WIDE, [-1, -0.9999521, -0.4041169, 0.4041169, 0.9784437, 1, 1],
            [6.998078e-35, 0.0002902283, 0.9803528, 0.9803528, 0.08047226, 4.598996e-08, 2.003213e-54]),
    'erfc': (WIDE, [2, 1.999952, 1.404117, 0.5958831, 0.02155627, 5.423401e-09, 8.967263e-56],
             [-6.998078e-35, -0.0002902283, -0.9803528, -0.9803528, -0.08047226, -4.598996e-08, -2.003213e-54]),
    'erfcx': (WIDE, [3.224826e+34, 7775.618, 1.616129, 0.6858572, 0.3022612, 0.133065, 0.05051123],
              [-5.724066e+35, -44710.93, -2.340476, -0.6139862, -0.1460302, -0.03059315, -0.00450437]),
    'exp2': (WIDE, [0.002129898, 0.1363135, 0.7711054, 1.29684, 3.084422, 17.44812, 2233.36],
             [0.001476333, 0.0944853, 0.5344895, 0.8989007, 2.137958, 12.09412, 1548.047]),
    'expm1': (WIDE, [-0.9998602, -0.9435839, -0.3127107, 0.4549914, 4.078419, 60.86781, 67845.29],
              [0.0001398416, 0.05641614, 0.6872893, 1.454991, 5.078419, 61.86781, 67846.29]),
    'gammaln': (WIDE, [-10.41591, 0.4682884, 1.341659, 0.863074, -0.1091741, 1.950966, 15.39912],
                [-5.345956, -6.364476, 1.213958, -2.753999, 0.1472912, 1.290984, 2.363578]),
    'i0': (WIDE, [972.0774, 4.413444, 1.035466, 1.035466, 1.777438, 12.59382, 8211.251],
           [-915.5548, -3.532087, -0.1908153, 0.1908153, 1.111874, 10.93348, 7833.036]),
    'i0e': (WIDE, [0.1359369, 0.2489895, 0.711665, 0.711665, 0.3499983, 0.2035602, 0.1210273],
            [0.007904213, 0.04972276, 0.5805197, -0.5805197, -0.1310573, -0.02683692, -0.005574576]),
    'i1': (WIDE, [-915.5548, -3.532087, -0.1908153, 0.1908153, 1.111874, 10.93348, 7833.036],
           [868.9163, 3.184892, 0.5266257, 0.5266257, 1.093208, 9.943283, 7507.158]),
    'i1e': (WIDE, [-0.1280327, -0.1992667, -0.1311453, 0.1311453, 0.218941, 0.1767233, 0.1154527],
            [-0.006522003, -0.0195874, 0.2307989, 0.2307989, -0.003675654, -0.01600508, -0.004803193]),
    'log_ndtr': (WIDE, [-42.49731, -6.20459, -1.038938, -0.436693, -0.05348652, -1.853691e-05, -4.740294e-29],
                 [8.984981, 3.167171, 1.050942, 0.5754758, 0.1123918, 8.054194e-05, 5.315524e-28]),
    'ndtr': (WIDE, [3.496671e-19, 0.002020137, 0.3538302, 0.6461698, 0.9479187, 0.9999815, 1],
             [3.141752e-18, 0.00639812, 0.3718551, 0.3718551, 0.1065383, 8.054045e-05, 5.315524e-28]),
    'sinc': (WIDE, [0.01372529, 0.04236936, 0.7842133, 0.7842133, -0.1809723, 0.02953016, -0.01094939],
             [0.1056456, 0.3360866, 1.070746, -1.070746, 0.3468651, 0.216812, -0.08206114]),
    'expit': (UNIT, [0.5, 0.5002441, 0.5774954, 0.6513549, 0.7308665],
              [0.25, 0.2499999, 0.2439945, 0.2270917, 0.1967006]),
    'erfinv': (UNIT, [1.201061e-20, 0.0008654562, 0.2844337, 0.6273073, 2.331468],
               [0.8862269, 0.8862276, 0.960905, 1.313549, 203.3563]),
    'ndtri': (UNIT, [-9.229834, -3.097269, -0.4887764, 0.3186394, 3.097269],
              [7.903682e+18, 303.5288, 2.824665, 2.637164, 303.5288]),
    'logit': (UNIT, [-45.74771, -6.930495, -0.7884574, 0.5108256, 6.930495],
              [7.378698e+19, 1025.001, 4.654545, 4.266667, 1025.001]),
    'log1p': (UNIT, [1.355253e-20, 0.000976086, 0.2719337, 0.4855078, 0.6926588],
              [1, 0.9990244, 0.7619048, 0.6153846, 0.5002443]),
    'entr': (UNIT, [6.199971e-19, 0.006769015, 0.3634846, 0.2937523, 0.0009760855],
             [44.74771, 5.931472, 0.1631508, -0.5299964, -0.999023]),
}


def close(ours, theirs, rtol=1e-5):
    numpy.testing.assert_allclose(ours.detach().double().numpy(), theirs, rtol=rtol, atol=1e-37)


@pytest.mark.parametrize('name', VALUES)
def test_values(name):
    numbers, values, derivatives = VALUES[name]
    for dtype, rtol in (('float32', 1e-5), ('float64', 2e-6)):  # of float64 the table has seven digits
        x = koine.tensor(numbers, dtype=dtype, requires_grad=True)
        result = getattr(special, name)(x)
        assert result.dtype is x.dtype
        result.sum().backward()
        close(result, values, rtol)
        close(x.grad, derivatives, 1e-4 if dtype == 'float32' else rtol)  # some are small differences


def test_names_are_those_of_the_package():
    assert special.expit is koine.sigmoid and special.psi is koine.digamma and special.xlogy is koine.xlogy
    assert special.gammainc is koine.igamma and special.logsumexp is koine.logsumexp
    assert {'entr', 'erfcx', 'multigammaln'} <= set(dir(special))
    assert [name for name in dir(special) if not hasattr(special, name)] == []
    with pytest.raises(AttributeError, match='koine.special has no bessel_j7'):
        special.bessel_j7


def test_functions_with_more_arguments():
    x = koine.tensor(POSITIVE)
    close(special.polygamma(1, x), [10001.62, 2.834049, 0.3949341, 0.05127082])
    close(special.polygamma(2, x), [-2000002, -6.434993, -0.1541138, -0.002628122])
    close(x.polygamma(4), [-2.4e+11, -144.7083, -0.1362661, -4.140598e-05])
    close(special.multigammaln(x + 3, 2), [1.566499, 2.885842, 9.317671, 95.96353])
    close(special.gammainc(x, koine.tensor(2.0)), [0.9995033, 0.9237471, 0.3233236, 6.443731e-14], 2e-5)
    close(special.gammaincc(x, koine.tensor(2.0)), [0.0004966645, 0.07625285, 0.6766764, 1], 2e-5)
    close(special.xlog1py(2.0, koine.tensor([0.5, 1e-8])), [0.8109302, 2e-8])
    close(special.xlog1py(koine.tensor([0.0, 2.0]), -1), [0, -numpy.inf])
    assert special.xlogy(koine.tensor([0.0, 2.0]), 0.0).tolist() == [0, -numpy.inf]
    close(special.softmax(x, 0), numpy.exp(POSITIVE) / numpy.exp(POSITIVE).sum())
    close(special.log_softmax(x, 0, dtype=koine.float64).exp().sum(), 1)
    assert special.round(koine.tensor([0.126]), decimals=2).item() == pytest.approx(0.13)


def test_erfcx_far_out():
    x = koine.tensor([8.99, 9.01, 26.0, 1e6, 1e20, numpy.inf, -9.0, -12.0, numpy.nan])
    expected = [0.0623762, 0.0622394, 0.02168358, 5.641896e-07, 5.641896e-21, 0, 3.012195e+35, numpy.inf, numpy.nan]
    close(special.erfcx(x), expected)
    y = koine.tensor([25.99, 26.01, 40.0], dtype='float64', requires_grad=True)
    close(special.erfcx(y), [0.0216919156, 0.0216752605, 0.0141003360], 1e-6)
    assert koine.autograd.gradcheck(special.erfcx, koine.tensor([-1.0, 0.3, 2.0, 8.99, 30.0], dtype='float64',
                                                               requires_grad=True))
    assert special.erfcx(koine.tensor([1])).item() == pytest.approx(0.4275836)
    assert special.erfcx(koine.tensor([1.0], dtype='float16')).dtype is koine.float16
    with pytest.raises(TypeError, match='erfcx: input must be a koine.Tensor, not float'):
        special.erfcx(1.0)


# --- polynomials ------------------------------------------------------------------------------------------------------

PLACES = [-1.5, -0.25, 0.5, 0.75, 2.0]

# name: (degree 3, degree 8)
POLYNOMIALS = {
    'chebyshev_polynomial_t': ([-9, 0.6875, -1, -0.5625, 26], [1103.5, -0.43554688, -0.5, 0.87695313, 18817]),
    'chebyshev_polynomial_u': ([-21, 0.875, -1, 0.375, 56], [2584, -0.66796875, 0, 0.33203125, 40545]),
    'chebyshev_polynomial_v': ([-29, 1.625, -1, -0.875, 41], [3571, -1.5976562, -1, 1.0585938, 29681]),
    'chebyshev_polynomial_w': ([-13, 0.125, -1, 1.625, 71], [1597, 0.26171875, 1, -0.39453125, 51409]),
    'hermite_polynomial_h': ([-9, 2.875, -5, -5.625, 40], [5217, 891.62891, -895, -2239.7461, -880]),
    'hermite_polynomial_he': ([1.125, 0.734375, -1.375, -1.828125, 2],
                              [-70.183594, 79.563492, 12.691406, -69.687973, 249]),
    'laguerre_polynomial_l': ([9.4375, 1.8463542, -0.14583333, -0.4765625, -0.33333333],
                              [94.7801, 4.0326919, -0.498363, -0.24367863, 0.35873016]),
    'legendre_polynomial_p': ([-6.1875, 0.3359375, -0.4375, -0.0703125, 17],
                              [471.72617, -0.15245402, -0.073638916, 0.19760931, 7691.1484]),
    'shifted_chebyshev_polynomial_t': ([-244, -9, 0, -1, 99], [7380481, 1103.5, 1, -0.5, 665857]),
    'shifted_chebyshev_polynomial_u': ([-496, -21, 0, -1, 204], [15003009, 2584, 1, 0, 1372105]),
    'shifted_chebyshev_polynomial_v': ([-559, -29, 1, -1, 169], [16908641, 3571, 1, -1, 1136689]),
    'shifted_chebyshev_polynomial_w': ([-433, -13, -1, -1, 239], [13097377, 1597, 1, 1, 1607521]),
}


@pytest.mark.parametrize('name', POLYNOMIALS)
def test_polynomials(name):
    polynomial, x = getattr(special, name), koine.tensor(PLACES)
    for degree, expected in zip((3, 8), POLYNOMIALS[name]):
        numpy.testing.assert_allclose(polynomial(x, degree).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert polynomial(x, 0).tolist() == [1] * 5 and polynomial(x, -2).tolist() == [0] * 5
    assert polynomial(koine.tensor([1, 2]), 2).dtype is koine.float32
    assert koine.autograd.gradcheck(lambda x: polynomial(x, 5), koine.tensor(PLACES, dtype='float64',
                                                                            requires_grad=True))
    with pytest.raises(TypeError, match='%s: the degree n is an int, not float' % name):
        polynomial(x, 2.0)
