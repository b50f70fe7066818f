"""Golden cases of the elementwise operators, from inputs that hurt."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact

NAN = float('nan')
INF = float('inf')
SPECIAL = [-INF, -100.0, -21.0, -1.5, -1e-12, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0, 21.0, 100.0, INF, NAN]
FINITE = [x for x in SPECIAL if abs(x) < INF]


def activations(folder):
    f = GoldenFile('activations', 41)

    def case(name, function, special=SPECIAL, gradient=True, case=None, **params):
        case = case or name
        f.listed(case, name, [f.uniform(3, 7, low=-4, high=4)], lambda x: function(x, **params), **params)
        f.listed(case + '_special', name, [exact(special)], lambda x: function(x, **params), gradient=gradient,
                 **params)

    case('elu', F.elu)
    case('elu', F.elu, case='elu_of_2', alpha=2.0)
    case('celu', F.celu, alpha=0.5)
    case('selu', F.selu)
    case('leaky_relu', F.leaky_relu)
    case('leaky_relu', F.leaky_relu, case='leaky_relu_of_2', negative_slope=2.0)
    case('mish', F.mish, special=FINITE + [NAN])
    case('softplus', F.softplus)
    case('softplus', F.softplus, case='softplus_of_2', beta=2.0, threshold=1.0)
    # PyTorch's kernel gives NaN at infinity
    case('gelu', F.gelu, special=FINITE + [NAN])
    case('gelu', F.gelu, special=FINITE + [NAN], case='gelu_tanh', approximate='tanh')
    case('hardshrink', F.hardshrink)
    case('softshrink', F.softshrink)
    case('softshrink', F.softshrink, case='softshrink_of_0', lambd=0.0)
    case('threshold', F.threshold, threshold=0.25, value=-7.5)
    case('rrelu', F.rrelu)
    x = exact([[-2.0, 0.0, 3.0, NAN], [-0.0, -INF, INF, 1.0]])
    f.listed('prelu_one', 'prelu', [x, exact([0.25])], F.prelu)
    f.listed('prelu_channels', 'prelu', [f.distinct(2, 3, 2, 2), exact([0.25, -1.0, 0.0])], F.prelu, terms=8)
    f.listed('prelu_special', 'prelu', [x, exact([0.25, 0.0, 2.0, INF])], F.prelu, terms=2)
    for dim in (0, 1, -1):
        f.listed('glu_%d' % dim, 'glu', [f.distinct(2, 4, 6, low=-4, high=4)], lambda x: F.glu(x, dim), dim=dim)
    f.listed('glu_special', 'glu', [exact([[1.0, 2.0, 3.0, -3.0, 1000.0, -1000.0, NAN, 0.0]])], F.glu)
    f.listed('threshold_integers', 'threshold', [f.integers(-9, 9, 13)], lambda x: F.threshold(x, 2, 7), gradient=False, threshold=2, value=7)
    f.save(folder)


def binary(folder):
    f = GoldenFile('binary', 42)
    a = [0.0, -0.0, 0.0, 7.5, -7.5, 7.5, -7.5, 1.0, INF, -INF, INF, 2.0, NAN, 1.0, 3.0, -6.0]
    b = [0.0, 2.0, -3.0, 2.0, 2.0, -2.0, -2.0, 0.0, INF, INF, 2.0, INF, 1.0, NAN, 3.0, 2.0]
    a, b = exact(a), exact(b)
    for name in ('minimum', 'fmax', 'fmin', 'copysign', 'hypot', 'atan2', 'logaddexp', 'logaddexp2', 'xlogy'):
        function = getattr(torch, name)
        f.listed(name, name, [f.uniform(3, 4), f.uniform(4, low=0.2, high=2)], function)
        f.listed(name + '_special', name, [a, b], function,
                 gradient=name in ('minimum', 'fmax', 'fmin', 'copysign', 'xlogy'))
    f.listed('xlog1py', 'xlog1py', [f.uniform(3, 4), f.uniform(4, low=-0.8, high=2)], torch.special.xlog1py)
    f.listed('xlog1py_special', 'xlog1py', [a, b], torch.special.xlog1py)
    f.listed('ldexp', 'ldexp', [f.uniform(3, 4), torch.tensor([1, -2, 0, 5])], lambda a, b: torch.ldexp(a, b))
    f.listed('remainder', 'remainder', [f.uniform(3, 4, low=-9, high=9), f.uniform(4, low=0.5, high=2)], torch.remainder)
    f.listed('fmod', 'fmod', [f.uniform(3, 4, low=-9, high=9), f.uniform(4, low=0.5, high=2)], torch.fmod)
    for name in ('remainder', 'fmod', 'floor_divide'):
        f.listed(name + '_special', name, [a, b], getattr(torch, name), gradient=False)
    for mode in ('trunc', 'floor'):
        f.listed('div_' + mode, 'div_mode', [a, b], lambda a, b: torch.div(a, b, rounding_mode=mode), gradient=False,
                 rounding_mode=mode)
    i, j = torch.tensor([7, -7, 7, -7, 0, 2**62, -1, -8]), torch.tensor([2, 2, -2, -2, 5, 3, -1, 8])
    for name in ('remainder', 'fmod', 'floor_divide', 'minimum', 'gcd', 'lcm', 'bitwise_and', 'bitwise_or',
                 'bitwise_xor'):
        f.listed(name + '_integers', name, [i, j] if name not in ('lcm',) else [i[:5], j[:5]], getattr(torch, name),
                 gradient=False)
    f.listed('div_trunc_integers', 'div_mode', [i, j], lambda a, b: torch.div(a, b, rounding_mode='trunc'), gradient=False, rounding_mode='trunc')
    f.listed('remainder_bytes', 'remainder', [torch.tensor([200, 255, 7], dtype=torch.uint8), torch.tensor([255, 7, 255], dtype=torch.uint8)], torch.remainder,
             gradient=False)
    for value in (2.5, -2.5):
        x = exact([-INF, -7.5, -2.5, -0.0, 0.0, 1.0, 7.5, INF, NAN])
        for name in ('sub', 'div', 'floor_divide', 'remainder', 'fmod'):
            f.listed('%s_scalar_%g' % (name, value), name + '_scalar', [x], lambda x: getattr(torch, name)(x, value),
                     gradient=name in ('sub', 'div'), value=value)
        f.listed('rsub_scalar_%g' % value, 'rsub_scalar', [x], lambda x: torch.rsub(x, value), value=value)
        f.listed('rdiv_scalar_%g' % value, 'rdiv_scalar', [x], lambda x: value / x, value=value)
    f.listed('rpow_scalar', 'rpow_scalar', [exact([-INF, -2.0, -0.0, 0.5, 3.0, INF, NAN])], lambda x: torch.pow(2.5, x), value=2.5)
    f.listed('rpow_scalar_of_0', 'rpow_scalar', [exact([-1.0, 0.0, 0.5, 3.0, NAN])], lambda x: torch.pow(0.0, x), value=0.0)
    f.listed('rpow_scalar_integers', 'rpow_scalar', [torch.tensor([0, 1, 5])], lambda x: torch.pow(-3, x), gradient=False, value=-3)
    f.listed('div_scalar_integers', 'div_scalar', [torch.tensor([7, -7, 0])], lambda x: torch.div(x.double(), 2).float(), gradient=False, value=2)
    x, y, w = f.uniform(3, 4), f.uniform(3, 4), f.uniform(4, low=-1, high=2)
    f.listed('lerp', 'lerp', [x, y, w], torch.lerp, terms=3)
    f.listed('lerp_scalar', 'lerp_scalar', [x, y], lambda a, b: torch.lerp(a, b, 0.75), weight=0.75)
    f.listed('lerp_ends', 'lerp', [exact([1.0, 1.0, INF, 1.0]), exact([3.0, 3.0, 1.0, NAN]), exact([0.0, 1.0, 0.5, 0.0])], torch.lerp)
    f.listed('addcmul', 'addcmul', [x, y, w], lambda a, b, c: torch.addcmul(a, b, c, value=0.5), value=0.5, terms=3)
    f.listed('addcdiv', 'addcdiv', [x, y, f.uniform(4, low=0.5, high=2)], lambda a, b, c: torch.addcdiv(a, b, c, value=-2.0), value=-2.0, terms=3)
    f.listed('addcmul_integers', 'addcmul', [torch.tensor([1, 2]), torch.tensor([3, -4]), torch.tensor([5, 6])], lambda a, b, c: torch.addcmul(a, b, c, value=3),
             gradient=False, value=3)
    f.listed('heaviside', 'heaviside', [exact([-1.0, 0.0, -0.0, 2.0, NAN]), exact([0.5, 0.25, 3.0, 0.5, 0.5])], torch.heaviside, gradient=False)
    f.save(folder)


def logic(folder):
    f = GoldenFile('logic', 43)
    a, b = exact([1.0, 0.0, -0.0, NAN, INF, -INF, 0.5]), exact([0.0, 0.0, 2.0, NAN, INF, INF, 0.25])
    for name in ('logical_and', 'logical_or', 'logical_xor'):
        f.listed(name, name, [a, b], getattr(torch, name), gradient=False)
    for name in ('logical_not', 'isnan', 'isinf', 'isfinite', 'isposinf', 'isneginf', 'signbit'):
        f.listed(name, name, [torch.cat([a, -a])], getattr(torch, name), gradient=False)
        f.listed(name + '_integers', name, [torch.tensor([-3, 0, 5])], getattr(torch, name), gradient=False)
    x, y = exact([1.0, 1.0, INF, INF, NAN, NAN, 0.0, 1e-9]), exact([1.000001, 1.1, INF, -INF, NAN, 1.0, 1e-9, 0.0])
    f.listed('isclose', 'isclose', [x, y], torch.isclose, gradient=False)
    f.listed('isclose_nan', 'isclose', [x, y], lambda a, b: torch.isclose(a, b, rtol=0.25, equal_nan=True), gradient=False, rtol=0.25, equal_nan=True)
    for name in ('eq', 'ne', 'lt', 'le', 'gt', 'ge'):
        f.listed(name + '_scalar', name + '_scalar', [a], lambda x: getattr(torch, name)(x, 0.5), gradient=False,
                 value=0.5)
        f.listed(name + '_scalar_integers', name + '_scalar', [torch.tensor([-3, 0, 5])],
                 lambda x: getattr(torch, name)(x, 0), gradient=False, value=0)
    i, j = torch.tensor([5, -5, 5, -5, 1, -1, 7]), torch.tensor([1, 1, 70, 70, -1, -1, 0])
    f.listed('left_shift', 'bitwise_left_shift', [i, j], torch.bitwise_left_shift, gradient=False)
    f.listed('right_shift', 'bitwise_right_shift', [i, j], torch.bitwise_right_shift, gradient=False)
    f.listed('right_shift_bytes', 'bitwise_right_shift', [torch.tensor([255, 128], dtype=torch.uint8), torch.tensor([3, 9], dtype=torch.uint8)],
             torch.bitwise_right_shift, gradient=False)
    f.listed('not_integers', 'bitwise_not', [i], torch.bitwise_not, gradient=False)
    f.listed('not_bools', 'bitwise_not', [i > 0], torch.bitwise_not, gradient=False)
    f.save(folder)


def special(folder):
    f = GoldenFile('special', 44)
    halves = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    for name in ('ceil', 'floor', 'trunc', 'round', 'frac', 'sgn'):
        f.listed(name, name, [f.uniform(3, 7, low=-5, high=5)], getattr(torch, name), gradient=name == 'frac')
        f.listed(name + '_special', name, [exact(SPECIAL + halves)], getattr(torch, name), gradient=False)
    f.listed('floor_integers', 'floor', [torch.tensor([-3, 5])], torch.floor, gradient=False)
    for decimals in (2, -1):
        f.listed('round_to_%d' % decimals, 'round', [f.uniform(3, 7, low=-99, high=99)],
                 lambda x: torch.round(x, decimals=decimals), gradient=False, decimals=decimals)
    f.listed('nan_to_num', 'nan_to_num', [exact(SPECIAL)], lambda x: torch.nan_to_num(x, 2.0, 7.0, -9.0), nan=2.0, posinf=7.0, neginf=-9.0)
    f.listed('nan_to_num_integers', 'nan_to_num', [torch.tensor([1, 2])], torch.nan_to_num, gradient=False)
    functions = {'erfinv': (-0.99, 0.99), 'ndtr': (-5, 5), 'log_ndtr': (-30, 5), 'ndtri': (0.01, 0.99),
                 'lgamma': (0.1, 9), 'digamma': (0.1, 9), 'i0': (-9, 9), 'i0e': (-40, 40), 'i1': (-9, 9),
                 'i1e': (-40, 40), 'sinc': (-4, 4), 'entr': (0.1, 3), 'deg2rad': (-360, 360), 'rad2deg': (-7, 7),
                 'logit': (0.01, 0.99)}
    for name, (low, high) in functions.items():
        function = getattr(torch, name, None) or getattr(torch.special, name)
        f.listed(name, name, [f.uniform(3, 7, low=low, high=high)], function)
        # of large x, sinc is rounding noise; i0 and i1 overflow in float32, and PyTorch's are NaN at infinity
        avoided = {'sinc': (INF, 100.0, 21.0, 1e-12), 'i0': (INF, 100.0), 'i1': (INF, 100.0)}.get(name, ())
        points = [x for x in SPECIAL if abs(x) not in avoided]
        f.listed(name + '_special', name, [exact(points)], function, gradient=False)
    f.listed('erfinv_near_1', 'erfinv', [exact([0.999, 0.9999, 1 - 2**-20, -1 + 2**-24])], torch.erfinv)
    f.listed('ndtri_near_0', 'ndtri', [exact([1e-3, 1e-9, 1e-30])], torch.special.ndtri, gradient=False)
    f.listed('digamma_below_0', 'digamma', [exact([-0.25, -1.5, -7.75, -0.001])], torch.digamma, terms=100)
    f.listed('lgamma_below_0', 'lgamma', [exact([-0.25, -1.5, -7.75, -0.001])], torch.lgamma, gradient=False)
    for n in (0, 1, 2, 3, 5):
        f.listed('polygamma_%d' % n, 'polygamma', [f.uniform(9, low=0.2, high=9)], lambda x: torch.polygamma(n, x), n=n)
    f.listed('polygamma_1_below_0', 'polygamma', [exact([-0.25, -1.5, -7.75])], lambda x: torch.polygamma(1, x), gradient=False, n=1)
    f.listed('logit_clipped', 'logit', [exact([-1.0, 0.0, 0.05, 0.3, 0.95, 1.0, 2.0, NAN])], lambda x: torch.logit(x, 0.1), eps=0.1)
    f.listed('angle', 'angle', [f.uniform(3, 7, low=-5, high=5)], torch.angle)
    f.listed('angle_special', 'angle', [exact(SPECIAL)], torch.angle, gradient=False)
    f.listed('angle_integers', 'angle', [torch.tensor([-3, 0, 5])], torch.angle, gradient=False)
    f.listed('erfcx', 'erfcx', [f.uniform(3, 7, low=-3, high=4)], torch.special.erfcx)
    f.listed('erfcx_far', 'erfcx', [exact([-9.0, 8.75, 9.25, 10.5, 11.5, 25.5, 26.5, 1e6, 1e20])], torch.special.erfcx, gradient=False)
    f.listed('erfcx_special', 'erfcx', [exact([x for x in SPECIAL if x != -21])], torch.special.erfcx, gradient=False)
    f.save(folder)


def make(folder):
    for family in (activations, binary, logic, special):
        family(folder)
