"""torch.special: functions that the package has, most of them also by names of its own, erfcx, and polynomials."""
import math

from . import _functions, _ops
from ._tensor import Tensor

# PyTorch's names, and the package's where they differ.
NAMES = {
    **{name: name for name in '''digamma entr erf erfc erfinv exp2 expm1 i0 i0e i1 i1e log1p log_ndtr log_softmax logit
       logsumexp ndtr ndtri polygamma round sinc softmax xlog1py xlogy'''.split()},
    'expit': 'sigmoid', 'gammainc': 'igamma', 'gammaincc': 'igammac', 'gammaln': 'lgamma', 'modified_bessel_i0': 'i0',
    'modified_bessel_i1': 'i1', 'multigammaln': 'mvlgamma', 'psi': 'digamma',
}


def __getattr__(name):
    found = NAMES.get(name)
    if found is None:
        raise AttributeError('koine.special has no %s' % name)
    function = getattr(_functions, found) if found in _functions.PUBLIC else _ops.function(found)
    globals()[name] = function
    return function


def __dir__():
    return sorted({*globals(), *NAMES})


# --- erfcx ------------------------------------------------------------------------------------------------------------

_COEFFICIENTS = [math.prod(range(-1, -2 * n, -2)) / 2 ** n for n in range(7)]  # of x**(-2 n), times sqrt(pi) x


def erfcx(input):
    """exp(x**2) erfc(x), also where the one is infinite and the other zero. Of integers as of float32."""
    if not isinstance(input, Tensor):
        raise TypeError('erfcx: input must be a koine.Tensor, not %s' % type(input).__name__)
    if not input.is_floating_point():
        input = input.float()
    if input.dtype.itemsize < 4:
        return erfcx(input.float()).to(input.dtype)
    large = 26.0 if input.dtype.itemsize == 8 else 9.0
    return _functions.where(input > large, _erfcx_of_large(input.clamp(min=large)), _erfcx_of_small(input, large))


def _erfcx_of_small(input, large):
    x = input.clamp(max=large)
    # The square of a multiple of 1/16 is exact, and what it leaves is small, so that exp keeps all digits.
    rough = (x.detach() * 16).round() / 16
    return (rough * rough).exp() * ((x - rough) * (x + rough)).exp() * x.erfc()


def _erfcx_of_large(x):
    square, total = 1 / (x * x), 0.0
    for one in reversed(_COEFFICIENTS):
        total = total * square + one
    return total / (x * math.sqrt(math.pi))


# --- orthogonal polynomials -------------------------------------------------------------------------------------------


def _polynomial(name, first, following):
    """Those of degree 0, 1, 2, ... are 1, first(x), and following(x, k, p, q) after p of degree k and q of k - 1."""

    def function(input, n):
        if not isinstance(input, Tensor):
            raise TypeError('%s: input must be a koine.Tensor, not %s' % (name, type(input).__name__))
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError('%s: the degree n is an int, not %s' % (name, type(n).__name__))
        x = input if input.is_floating_point() else input.float()
        if n < 1:
            return _functions.full_like(x, n == 0)
        before, found = 1, first(x)
        for k in range(1, n):
            before, found = found, following(x, k, found, before)
        return found

    function.__name__ = function.__qualname__ = name
    return function


def _chebyshev(x, k, p, q):
    return 2 * x * p - q


for _kind, _start in (('t', lambda x: x), ('u', lambda x: 2 * x), ('v', lambda x: 2 * x - 1),
                      ('w', lambda x: 2 * x + 1)):
    _name = 'chebyshev_polynomial_' + _kind
    globals()[_name] = _polynomial(_name, _start, _chebyshev)
    globals()['shifted_' + _name] = _polynomial(
        'shifted_' + _name, lambda x, start=_start: start(2 * x - 1), lambda x, *rest: _chebyshev(2 * x - 1, *rest))

hermite_polynomial_h = _polynomial('hermite_polynomial_h', lambda x: 2 * x, lambda x, k, p, q: 2 * (x * p - k * q))
hermite_polynomial_he = _polynomial('hermite_polynomial_he', lambda x: x, lambda x, k, p, q: x * p - k * q)
laguerre_polynomial_l = _polynomial('laguerre_polynomial_l', lambda x: 1 - x,
                                    lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))
legendre_polynomial_p = _polynomial('legendre_polynomial_p', lambda x: x,
                                    lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))
