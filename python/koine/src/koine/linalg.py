"""Linear algebra: torch.linalg, of real matrices in float32 and float64."""
import collections

from ._bind import tensor_function
from ._c import KoineValueError as LinAlgError  # noqa: F401

C_FUNCTIONS = {
    'cholesky': ('kn_linalg_cholesky', 'A, *, upper=False'),
    'cholesky_ex': ('kn_linalg_cholesky_ex', 'A, *, upper=False'),
    'cond': ('kn_linalg_cond', 'A, p="2"'),
    'cross': ('kn_linalg_cross', 'input, other, *, dim=-1'),
    'det': ('kn_linalg_det', 'A'),
    'eigh': ('kn_linalg_eigh', 'A, upper=False'),
    'eigvalsh': ('kn_linalg_eigvalsh', 'A, upper=False'),
    'householder_product': ('kn_linalg_householder_product', 'A, tau'),
    'inv': ('kn_linalg_inv', 'A'),
    'inv_ex': ('kn_linalg_inv_ex', 'A'),
    'lu': ('kn_linalg_lu', 'A'),
    'lu_factor': ('kn_linalg_lu_factor', 'A'),
    'lu_factor_ex': ('kn_linalg_lu_factor_ex', 'A'),
    'lu_solve': ('kn_linalg_lu_solve', 'LU, pivots, B, left=True, adjoint=False'),
    'matmul': ('kn_matmul', 'input, other'),
    'matrix_exp': ('kn_linalg_matrix_exp', 'A'),
    'matrix_norm': ('kn_linalg_matrix_norm', 'A, ord="fro", keepdim=False'),
    'matrix_power': ('kn_matrix_power', 'A, n'),
    'matrix_rank': ('kn_linalg_matrix_rank', 'A'),
    'multi_dot': ('kn_linalg_multi_dot', 'tensors'),
    'pinv': ('kn_linalg_pinv', 'A'),
    'qr': ('kn_linalg_qr', 'A, mode="reduced"'),
    'slogdet': ('kn_linalg_slogdet', 'A'),
    'solve': ('kn_linalg_solve', 'A, B'),
    'solve_ex': ('kn_linalg_solve_ex', 'A, B'),
    'solve_triangular': ('kn_linalg_solve_triangular', 'A, B, *, upper, left=True, unitriangular=False'),
    'svd': ('kn_linalg_svd', 'A, full_matrices=True'),
    'svdvals': ('kn_linalg_svdvals', 'A'),
    'tensorinv': ('kn_linalg_tensorinv', 'A, ind=2'),
    'tensorsolve': ('kn_linalg_tensorsolve', 'A, B'),
    'vecdot': ('kn_linalg_vecdot', 'x, y, *, dim=-1'),
}
_RESULTS = {
    'cholesky_ex': 'L info', 'eigh': 'eigenvalues eigenvectors', 'inv_ex': 'inverse info', 'lu': 'P L U',
    'lu_factor': 'LU pivots', 'lu_factor_ex': 'LU pivots info', 'qr': 'Q R', 'slogdet': 'sign logabsdet',
    'solve_ex': 'result info', 'svd': 'U S Vh',
}
for _name, (_c_name, _line) in C_FUNCTIONS.items():
    globals()[_name] = tensor_function(_name, _c_name, _line, _RESULTS.get(_name))

_least_squares = tensor_function('lstsq', 'kn_linalg_lstsq', 'A, B')
_Lstsq = collections.namedtuple('lstsq', 'solution residuals rank singular_values', module='koine')


def lstsq(A, B, rcond=None, *, driver=None):
    """(solution, residuals, rank, singular_values) of an A [..., m, n] of full rank. The residuals are the sums of
    squares of each column where m > n, else, as the singular values, without elements."""
    from ._functions import empty, full
    x = _least_squares(A, B)
    rows, columns = A.shape[-2:]
    none = empty(0, dtype=x.dtype, device=x.device)
    rank = full(A.shape[:-2], min(rows, columns), dtype='int64', device=x.device)
    return _Lstsq(x, (A @ x - B).square().sum(-2) if rows > columns else none, rank, none)


def norm(A, ord=None, dim=None, keepdim=False):
    """torch.linalg.norm: of vectors, or of matrices if `dim` has two dimensions."""
    from ._c import dims, lib
    from ._tensor import wrap
    kind = {'fro': lib.KN_NORM_FRO, 'nuc': lib.KN_NORM_NUC, None: lib.KN_NORM_DEFAULT}.get(ord, lib.KN_NORM_ORD)
    pointer, count = dims(dim)
    number = 2 if isinstance(ord, (str, type(None))) else ord
    return wrap(lib.kn_linalg_norm(A._h, kind, number, pointer, count, keepdim))


def vector_norm(x, ord=2, dim=None, keepdim=False):
    from . import _ops
    return _ops.function('norm')(x, ord, dim, keepdim)


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    from . import _ops
    return _ops.function('diagonal')(A, offset, dim1, dim2)


def vander(x, *, N=None):
    """Powers that increase."""
    from . import _ops
    return _ops.function('vander')(x, N, True)
