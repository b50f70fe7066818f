"""torch.special: functions that the package has, most of them also by names of its own, and polynomials."""
from . import _functions, _ops
from ._tensor import Tensor

# PyTorch's names, and the package's where they differ.
NAMES = {
    **{name: name for name in '''digamma entr erf erfc erfcx erfinv exp2 expm1 i0 i0e i1 i1e log1p log_ndtr log_softmax
       logit logsumexp ndtr ndtri polygamma round sinc softmax xlog1py xlogy'''.split()},
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


# --- orthogonal polynomials -------------------------------------------------------------------------------------------


def _polynomial(name, first, following, shifted=False):
    """Of degree 0 it is 1, of degree 1 a x + b with (a, b) = first, and p of degree k and q of k - 1 are followed by
    (a x + b) p - c q with (a, b, c) = following(k). Without factors in front of them, one pass over memory per degree:
    q + v (x + b / a) p, where the factor that is left out is known."""

    def function(input, n):
        if not isinstance(input, Tensor):
            raise TypeError('%s: input must be a koine.Tensor, not %s' % (name, type(input).__name__))
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError('%s: the degree n is an int, not %s' % (name, type(n).__name__))
        x = input if input.is_floating_point() else input.float()
        if n < 1:
            return _functions.full_like(x, n == 0)
        x = 2 * x - 1 if shifted else x
        p, of_p = (first[0] * x + first[1], 1) if first[1] else (x, first[0])
        q, of_q = _functions.full((), 1.0, dtype=x.dtype, device=x.device) if n > 1 else None, 1
        for k in range(1, n):
            a, b, c = following(k)
            following_of = -c * of_q
            p, q = _ops.function('addcmul')(q, x + b / a if b else x, p, value=a * of_p / following_of), p
            of_p, of_q = following_of, of_p
        return p if of_p == 1 else p * of_p

    function.__name__ = function.__qualname__ = name
    return function


for _kind, _first in (('t', (1, 0)), ('u', (2, 0)), ('v', (2, -1)), ('w', (2, 1))):
    for _shifted in (False, True):
        _name = 'shifted_' * _shifted + 'chebyshev_polynomial_' + _kind
        globals()[_name] = _polynomial(_name, _first, lambda k: (2, 0, 1), _shifted)

hermite_polynomial_h = _polynomial('hermite_polynomial_h', (2, 0), lambda k: (2, 0, 2 * k))
hermite_polynomial_he = _polynomial('hermite_polynomial_he', (1, 0), lambda k: (1, 0, k))
laguerre_polynomial_l = _polynomial('laguerre_polynomial_l', (-1, 1),
                                    lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)))
legendre_polynomial_p = _polynomial('legendre_polynomial_p', (1, 0),
                                    lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1)))
