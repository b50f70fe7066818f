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


def square(d, grad=True):
    n = d.integer(1, 6)
    return d.floats(shape=d.shape(0, 2) + (n, n), low=-1, high=1, special=False, layout=False, grad=grad)


def signs(vectors):
    """Of the largest element of each column."""
    place = vectors.abs().argmax(-2, keepdim=True)
    return torch.sign(vectors.gather(-2, place)).detach()


@cases("linalg_cholesky", "linalg_cholesky_ex")
def cholesky(d):
    """Of the identity times a positive number: the random comparison has no positive definite matrices."""
    a = d.floats(shape=d.shape(0, 2) + (1, 1), low=0.5, high=4, special=False, layout=False)
    return Case([a], function=wide(lambda t: L.cholesky_ex(t)[:2 if d.name.endswith("ex") else 1]))


@cases("linalg_solve_triangular")
def triangular(d):
    a = square(d)
    a.base.add_(torch.where(a.base < 0, -1, 1).to(a.base.dtype))
    b = d.like(a, a.shape[:-1] + (d.integer(1, 4),), special=False)
    upper, unit = d.chance(0.5), d.chance(0.5)
    return Case([a, b], {"upper": upper, "unitriangular": unit},
                wide(lambda s, t: L.solve_triangular(s, t, upper=upper, unitriangular=unit)), tolerance=1e-3)


@cases("linalg_lu_factor", "linalg_lu_factor_ex")
def lu_factor(d):
    function = L.lu_factor_ex if d.name.endswith("ex") else L.lu_factor  # which refuses singular matrices
    return Case([square(d)], function=wide(lambda t: tuple(function(t))), tolerance=1e-2)


@cases("linalg_solve", "linalg_solve_ex")
def solve(d):
    a = square(d)
    b = d.like(a, a.shape[:-1] + (d.integer(1, 4),), special=False)
    return Case([a, b], function=wide(lambda s, t: L.solve_ex(s, t)[:2 if d.name.endswith("ex") else 1]), tolerance=1e-2)


@cases("linalg_det")
def det(d):
    return Case([square(d)], function=wide(L.det), tolerance=1e-3)


@cases("linalg_slogdet")
def slogdet(d):
    return Case([square(d)], function=wide(L.slogdet), tolerance=1e-3)


@cases("linalg_qr")
def qr(d):
    n = d.integer(1, 5)
    a = d.floats(shape=d.shape(0, 2) + (n + d.integer(0, 3), n), low=-1, high=1, special=False, layout=False)
    return Case([a], {"mode": "reduced"}, wide(lambda t: L.qr(t)), tolerance=1e-2)


@cases("linalg_eigh")
def eigh(d):
    """Of rank one: with more the gradient of the vectors is that of the distance of close eigenvalues."""
    a = d.floats(shape=d.shape(0, 2) + (1, 1), low=-2, high=2, special=False, layout=False)

    def function(t):
        values, vectors = L.eigh(t)
        return values, vectors * signs(vectors)
    return Case([a], function=wide(function), tolerance=1e-3)


@cases("linalg_svd")
def svd(d):
    """Of one column, likewise."""
    a = d.floats(shape=d.shape(0, 2) + (d.integer(1, 5), 1), low=0.1, high=1, special=False, layout=False)

    def function(t):
        u, s, vh = L.svd(t, full_matrices=False)
        return u * signs(u), s, vh * signs(u).mT
    return Case([a], {"full_matrices": False}, wide(function), tolerance=1e-3)


@cases("linalg_matrix_exp")
def matrix_exp(d):
    return Case([square(d)], function=L.matrix_exp, tolerance=1e-4)


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
    return Case([x], {"kind": kind, "ord": ord, "dims": dims, "keepdim": keepdim},
                wide(lambda t: L.norm(t, by, dims, keepdim)), 1e-2)


@cases("linalg_householder_product")
def householder_product(d):
    n = d.integer(1, 4)
    a = d.tensor(d.shape(0, 2) + (n + d.integer(0, 2), n), special=False)
    return Case([a, d.like(a, a.shape[:-2] + (d.integer(1, n),), low=1.5, high=2, special=False)], function=L.householder_product,
                tolerance=1e-3)


@cases("vander")
def vander(d):
    n, increasing = d.integer(0, 4), d.chance(0.5)
    x = d.tensor(least=1, most=1, low=-2, high=2, special=False, grad=False)  # PyTorch's gradient fails
    return Case([x], {"n": n, "increasing": increasing}, lambda t: torch.vander(t, n, increasing), 1e-4)
