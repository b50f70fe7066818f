"""linalg.safetensors: linear algebra. Vectors have the sign that makes their largest element positive, as Koine's."""
import torch
from golden_file import GoldenFile, exact

L = torch.linalg


def positive(f, *shape):
    x = f.uniform(*shape)
    return exact((x @ x.mT + torch.eye(shape[-1], dtype=x.dtype)).numpy())


def signs(vectors):
    """Of the largest element of each column."""
    place = vectors.abs().argmax(-2, keepdim=True)
    return torch.sign(vectors.gather(-2, place)).detach()


def eigh(a):
    values, vectors = L.eigh(a)
    return values, vectors * signs(vectors)


def svd(a):
    u, s, vh = L.svd(a, full_matrices=False)
    sign = signs(u) if a.shape[-2] >= a.shape[-1] else signs(vh.mT)
    return u * sign, s, vh * sign.mT


def make(folder):
    f = GoldenFile('linalg', 33)
    f.listed('cholesky', 'linalg_cholesky', [positive(f, 2, 3, 4, 4)], L.cholesky, terms=50)
    f.listed('cholesky_ex', 'linalg_cholesky_ex', [positive(f, 3, 3)], L.cholesky_ex, terms=50)
    for upper in (False, True):
        for unit in (False, True):
            f.listed('solve_triangular_%d_%d' % (upper, unit), 'linalg_solve_triangular',
                     [positive(f, 4, 4), f.uniform(2, 4, 3)],
                     lambda a, b: L.solve_triangular(a, b, upper=upper, unitriangular=unit), upper=upper,
                     unitriangular=unit, terms=100)
    f.listed('lu_factor', 'linalg_lu_factor', [f.uniform(3, 4, 4)], lambda a: tuple(L.lu_factor(a)), gradient=False, terms=100)
    f.listed('lu_factor_tall', 'linalg_lu_factor', [f.uniform(5, 3)], lambda a: tuple(L.lu_factor(a)), gradient=False, terms=100)
    ties = exact([[1, 2, 3], [-1, 5, 2], [1, -2, 8]])
    f.listed('lu_factor_ties', 'linalg_lu_factor', [ties], lambda a: tuple(L.lu_factor(a)), gradient=False)
    singular = exact([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[3, 1], [1, 2]]])
    f.listed('lu_factor_ex', 'linalg_lu_factor_ex', [singular], lambda a: tuple(L.lu_factor_ex(a)), gradient=False)
    f.listed('solve', 'linalg_solve', [positive(f, 2, 4, 4), f.uniform(2, 4, 3)], L.solve, terms=200)
    f.listed('solve_broadcast', 'linalg_solve', [positive(f, 3, 3), f.uniform(2, 3, 1)], L.solve, terms=200)
    f.listed('solve_ex', 'linalg_solve_ex', [positive(f, 3, 3), f.uniform(3, 2)], L.solve_ex, terms=200)
    f.listed('det', 'linalg_det', [positive(f, 3, 4, 4)], L.det, terms=200)
    f.listed('det_singular', 'linalg_det', [singular], L.det, gradient=False)
    f.listed('det_empty', 'linalg_det', [f.uniform(2, 0, 0)], L.det, gradient=False)
    f.listed('slogdet', 'linalg_slogdet', [f.uniform(3, 4, 4)], L.slogdet, gradient=False, terms=200)
    f.listed('slogdet_singular', 'linalg_slogdet', [singular], L.slogdet, gradient=False)
    special = f.uniform(3, 2, 2)
    special[0, 0, 0] = float('nan')
    f.listed('det_special', 'linalg_det', [special], L.det, gradient=False)
    for name, shape in (('tall', (2, 5, 3)), ('wide', (3, 5)), ('square', (4, 4)), ('one', (1, 1))):
        f.listed('qr_' + name, 'linalg_qr', [f.uniform(*shape)], L.qr, terms=400)
    f.listed('qr_complete', 'linalg_qr', [f.uniform(5, 3)], lambda a: L.qr(a, 'complete'), gradient=False, mode='complete', terms=100)
    f.listed('qr_zero_column', 'linalg_qr', [exact([[0, 1], [0, 2], [0, 2]])], L.qr, gradient=False)
    f.listed('eigh', 'linalg_eigh', [positive(f, 2, 4, 4)], eigh, terms=1000)
    f.listed('eigh_diagonal', 'linalg_eigh', [exact([[3, 0, 0], [0, -1, 0], [0, 0, 2]])], eigh)
    f.listed('svd_tall', 'linalg_svd', [f.uniform(2, 5, 3)], svd, full_matrices=False, terms=2000)
    f.listed('svd_wide', 'linalg_svd', [f.uniform(3, 5)], svd, full_matrices=False, terms=2000)
    f.save(folder)
