"""Golden cases of pairs of rows and of matrices: distances with ties and equal rows, covariances with weights,
exponentials, views replaced."""
import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact


def distances(f):
    a, b = f.uniform(2, 4, 3), f.uniform(5, 3)
    b[0] = a[0, 0]  # a distance of 0
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, float('inf')):
        smooth = p >= 1
        f.listed('cdist_%g' % p, 'cdist', [a, b], lambda x, y: torch.cdist(x, y, p), gradient=smooth, terms=3, p=p)
        f.listed('pdist_%g' % p, 'pdist', [b], lambda x: F.pdist(x, p), gradient=smooth, terms=3, p=p)
    f.listed('pdist_one', 'pdist', [b[:1]], F.pdist, gradient=False)


def distances_by_products(f):
    """Of more than 25 rows; those of whole numbers have distances of exactly 0."""
    f.listed('cdist_products', 'cdist', [f.uniform(30, 3), f.uniform(2, 4, 3)], torch.cdist, terms=30)
    whole = exact(torch.tensor([[i % 5, i // 5] for i in range(27)]).float())
    f.listed('cdist_products_zeros', 'cdist', [whole, whole[5:9]], torch.cdist, terms=30)


def covariances(f):
    x, counts, weights = f.uniform(3, 6), torch.tensor([1, 2, 1, 3, 1, 2]), f.uniform(6, low=0.5, high=2)
    f.listed('cov', 'cov', [x], torch.cov, terms=6)
    f.listed('cov_0', 'cov', [x], lambda t: torch.cov(t, correction=0), terms=6, correction=0.0)
    f.listed('cov_counts', 'cov', [x, counts], lambda t, n: torch.cov(t, fweights=n), terms=6)
    f.listed('cov_weights', 'cov', [x, counts, weights], lambda t, n, w: torch.cov(t, fweights=n, aweights=w.detach()), gradient=False, terms=6)
    f.listed('cov_vector', 'cov', [x[0]], torch.cov, terms=6)
    f.listed('corrcoef', 'corrcoef', [x], torch.corrcoef, terms=6)


def matrices(f):
    f.listed('matrix_exp', 'linalg_matrix_exp', [f.uniform(2, 4, 4, low=-2, high=2)], torch.linalg.matrix_exp, terms=100)
    f.listed('matrix_exp_nilpotent', 'linalg_matrix_exp', [exact([0.0, 1.0, 0.0, 0.0]).reshape(2, 2)], torch.linalg.matrix_exp, terms=100)
    f.listed('cholesky_inverse', 'cholesky_inverse', [exact(torch.linalg.cholesky(torch.eye(3).double() * 2 + 0.5).float())], torch.cholesky_inverse,
             gradient=False, terms=10)


def replaced(f):
    x = f.uniform(3, 4)
    f.listed('select_scatter', 'select_scatter', [x, f.uniform(3)], lambda t, s: torch.select_scatter(t, s, 1, -2), dim=1, index=-2)
    f.listed('slice_scatter', 'slice_scatter', [x, f.uniform(2, 4)], lambda t, s: torch.slice_scatter(t, s, 0, 0, 3, 2), dim=0, start=0, stop=3,
             step=2)
    f.listed('diagonal_scatter', 'diagonal_scatter', [x, f.uniform(3)], lambda t, s: torch.diagonal_scatter(t, s, 1), offset=1)
    f.listed('as_strided_scatter', 'as_strided_scatter', [x, f.uniform(2, 2)], lambda t, s: torch.as_strided_scatter(t, s, (2, 2), (5, 2), 1),
             gradient=False, shape=[2, 2], strides=[5, 2], offset=1)


def make(folder):
    f = GoldenFile('pairs', 33)
    distances(f)
    covariances(f)
    matrices(f)
    replaced(f)
    distances_by_products(f)
    f.save(folder)
