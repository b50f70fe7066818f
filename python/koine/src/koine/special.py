"""torch.special: functions that the package has, most of them also by names of its own, and erfcx."""
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
