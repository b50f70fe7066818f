"""Linear algebra. PyTorch has none in half precision on CPUs: it is computed in float32, as in Koine."""

import torch

from cases import cases
from draw import Case

L = torch.linalg


def wide(function):
    """In float32 for halves, and back."""
    def run(*tensors):
        dtype = tensors[0].dtype
        half = dtype in (torch.float16, torch.bfloat16)
        result = function(*[t.float() if half else t for t in tensors])
        results = result if isinstance(result, (tuple, list)) else [result]
        return [y.to(dtype) if half and y.is_floating_point() else y for y in results]
    return run


def matrices_of(x):
    """The matrices of x, contiguous, as a view of its memory."""
    rows, columns = x.shape[-2:]
    count = torch.Size(x.shape).numel() // (rows * columns)
    return x.base[:count * rows * columns].view(count, rows, columns)


def drawn(d, rows, columns, grad=True):
    return d.floats(shape=d.shape(0, 2) + (rows, columns), low=-1, high=1, special=False, layout=False, grad=grad)


def regular(d, x, on_diagonal=False):
    """Adds n to, or subtracts it from, one element of each of the first n rows and columns. Which pivots a nearly
    singular matrix has, rounding decides."""
    n = min(x.shape[-2:])
    for matrix in matrices_of(x):
        for i, k in enumerate(range(n) if on_diagonal else torch.randperm(n, generator=d.generator).tolist()):
            matrix[i, k] += n if matrix[i, k] > 0 else -n
    return x


def square(d, grad=True, singular=0.0, on_diagonal=False):
    """Regular; with the probability `singular` one has a column of zeros, whose pivot is 0 however it rounds."""
    n = d.integer(1, 6)
    x = regular(d, drawn(d, n, n, grad), on_diagonal)
    if 0 not in x.shape and d.chance(singular):
        matrices_of(x)[-1, :, d.integer(0, n - 1)] = 0
    return x


def spectral(d, x):
    """Gives the matrices of x singular values between 0.5 and their number, at least 0.5 apart: the gradient of vectors
    is divided by differences. Square ones become symmetric, with these as eigenvalues of either sign."""
    rows, columns = x.shape[-2:]
    n = min(rows, columns)
    for matrix in matrices_of(x):
        left, right = (torch.linalg.qr(torch.randn(m, m, generator=d.generator, dtype=torch.float64)).Q[:, :n]
                       for m in (rows, columns))
        values = torch.arange(n, 0, -1) - 0.5 * torch.rand(n, generator=d.generator, dtype=torch.float64)
        if rows == columns:
            right, values = left, values * (1 - 2 * torch.randint(0, 2, (n,), generator=d.generator))
        product = left @ torch.diag(values) @ right.T
        matrix.copy_((product + product.T) / 2 if rows == columns else product)
    return x


def signs(vectors):
    """Of the largest element of each column."""
    place = vectors.abs().argmax(-2, keepdim=True)
    return torch.sign(vectors.gather(-2, place)).detach()


@cases("linalg_cholesky", "linalg_cholesky_ex")
def cholesky(d):
    n = d.integer(1, 5)
    a = drawn(d, n, n)
    for matrix in matrices_of(a):
        matrix.copy_((matrix.double() @ matrix.double().T + torch.eye(n)))
    return Case([a], function=wide(lambda t: L.cholesky_ex(t)[:2 if d.name.endswith("ex") else 1]), tolerance=1e-5)


@cases("linalg_solve_triangular")
def triangular(d):
    a = square(d, on_diagonal=True)
    b = d.like(a, a.shape[:-1] + (d.integer(1, 4),), special=False)
    upper, unit = d.chance(0.5), d.chance(0.5)
    return Case([a, b], {"upper": upper, "unitriangular": unit},
                wide(lambda s, t: L.solve_triangular(s, t, upper=upper, unitriangular=unit)), tolerance=1e-4)


@cases("linalg_lu_factor", "linalg_lu_factor_ex")
def lu_factor(d):
    function = L.lu_factor_ex if d.name.endswith("ex") else L.lu_factor  # which refuses singular matrices
    singular = d.one_of(0, 0.4)
    return Case([square(d, grad=not singular, singular=singular)], function=wide(lambda t: tuple(function(t))),
                tolerance=1e-4)


@cases("linalg_solve", "linalg_solve_ex")
def solve(d):
    a = square(d, singular=0.1 if d.name == "linalg_solve" else 0)
    b = d.like(a, a.shape[:-1] + (d.integer(1, 4),), special=False)
    function = (lambda s, t: L.solve_ex(s, t)[:2]) if d.name.endswith("ex") else L.solve
    return Case([a, b], function=wide(function), tolerance=1e-4)


@cases("linalg_det")
def det(d):
    return Case([square(d)], function=wide(L.det), tolerance=1e-4)


@cases("linalg_slogdet")
def slogdet(d):
    return Case([square(d)], function=wide(L.slogdet), tolerance=1e-4)


@cases("linalg_qr")
def qr(d):
    """PyTorch has no gradient of mode r, nor of mode complete for tall matrices."""
    rows, columns = d.integer(1, 6), d.integer(1, 6)
    mode = d.one_of("reduced", "reduced", "complete", "r")
    a = regular(d, drawn(d, rows, columns, grad=mode == "reduced" or (mode == "complete" and rows <= columns)))

    def function(t):
        q, r = L.qr(t, mode)
        return (q if mode != "r" else t.new_empty(t.shape[:-2] + (0, 0))), r  # PyTorch's has no dimensions
    return Case([a], {"mode": mode}, wide(function), tolerance=1e-4)


@cases("linalg_eigh")
def eigh(d):
    n = d.integer(1, 4)
    a = spectral(d, drawn(d, n, n))

    def function(t):
        values, vectors = L.eigh(t)
        return values, vectors * signs(vectors)
    return Case([a], function=wide(function), tolerance=1e-4)


@cases("linalg_svd")
def svd(d):
    a = spectral(d, drawn(d, d.integer(1, 4), d.integer(1, 4)))

    def function(t):
        u, s, vh = L.svd(t, full_matrices=False)
        sign = signs(u if t.shape[-2] >= t.shape[-1] else vh.mT)
        return u * sign, s, vh * sign.mT
    return Case([a], {"full_matrices": False}, wide(function), tolerance=1e-4)


@cases("linalg_matrix_exp")
def matrix_exp(d):
    n = d.integer(1, 6)
    return Case([drawn(d, n, n)], function=L.matrix_exp, tolerance=1e-5)


@cases("cholesky_inverse")
def cholesky_inverse(d):
    a = d.tensor(d.shape(0, 2) + (2, 2), low=1, high=2, special=False)
    upper = d.chance(0.5)
    return Case([a], {"upper": upper},
                lambda t: torch.cholesky_inverse(t.triu() if upper else t.tril(), upper=upper), 1e-3)


@cases("linalg_norm")
def norm(d):
    kind = d.one_of("default", "ord", "ord", "ord", "fro", "nuc")
    x = d.floats(shape=d.shape(0, 2) + (d.integer(1, 5), d.integer(1, 5)), special=False, ties=False, layout=False)
    last = d.one_of((-2, -1), (-1, -2))
    dims = d.one_of((-1,), last) if kind == "ord" else last
    ord = d.one_of(1.0, 2.0, -1.0, -2.0, float("inf"), float("-inf")) if kind == "ord" else 2.0
    keepdim = d.chance(0.5)
    by = {"default": None, "ord": ord}.get(kind, kind)

    def function(t):
        return L.norm(t, by, dims, keepdim)
    of_singular_values = kind == "nuc" or (len(dims) == 2 and by in (2.0, -2.0))  # PyTorch has none of halves
    return Case([x], {"kind": kind, "ord": ord, "dims": dims, "keepdim": keepdim},
                wide(function) if of_singular_values else function, 1e-2)


@cases("linalg_householder_product")
def householder_product(d):
    n = d.integer(1, 4)
    a = d.tensor(d.shape(0, 2) + (n + d.integer(0, 2), n), special=False)
    return Case([a, d.like(a, a.shape[:-2] + (d.integer(1, n),), low=1.5, high=2, special=False)],
                function=L.householder_product, tolerance=1e-3)


@cases("vander")
def vander(d):
    n, increasing = d.integer(0, 4), d.chance(0.5)
    x = d.tensor(least=1, most=1, low=-2, high=2, special=False, grad=False)  # PyTorch's gradient fails
    return Case([x], {"n": n, "increasing": increasing}, lambda t: torch.vander(t, n, increasing), 1e-4)
