"""Golden cases of matrix products with a further term and of einsum."""
import torch

from golden_file import GoldenFile, exact

NAN = float('nan')
INF = float('inf')


def products(f):
    f.listed('mm', 'mm', [f.uniform(3, 5), f.uniform(5, 2)], torch.mm, terms=5)
    f.listed('mm_nothing_inside', 'mm', [f.uniform(3, 0), f.uniform(0, 2)], torch.mm)
    f.listed('mm_special', 'mm', [exact([[INF, 1], [0, NAN], [-0.0, 0]]), exact([[1, 0], [2, -1]])], torch.mm, gradient=False)
    f.listed('bmm', 'bmm', [f.uniform(2, 3, 5), f.uniform(2, 5, 2)], torch.bmm, terms=5)
    f.listed('mv', 'mv', [f.uniform(3, 5), f.uniform(5)], torch.mv, terms=5)
    f.listed('dot', 'dot', [f.uniform(7), f.uniform(7)], torch.dot, terms=7)
    f.listed('vdot', 'vdot', [f.uniform(7), f.uniform(7)], torch.vdot, terms=7)
    f.listed('outer', 'outer', [f.uniform(3), f.uniform(4)], torch.outer, terms=4)
    f.listed('ger', 'ger', [f.uniform(3), f.uniform(1)], torch.ger, terms=3)
    for name, a, b in (('vectors', (5,), (5,)), ('matrices', (3, 5), (2, 5)), ('many', (2, 3, 5), (2, 2, 5)),
                       ('vector_many', (5,), (2, 2, 5)), ('number', (), (2, 3))):
        f.listed('inner_' + name, 'inner', [f.uniform(*a), f.uniform(*b)], torch.inner, terms=12)


def with_a_term(f):
    shapes = {'addmm': ((3, 4), (3, 5), (5, 4)), 'addmv': ((3,), (3, 5), (5,)), 'addr': ((3, 4), (3,), (4,)),
              'baddbmm': ((2, 3, 4), (2, 3, 5), (2, 5, 4)), 'addbmm': ((3, 4), (2, 3, 5), (2, 5, 4))}
    for name, (y, a, b) in shapes.items():
        function = getattr(torch, name)
        for suffix, beta, alpha in (('', 1.0, 1.0), ('_factors', -0.5, 2.0), ('_zero', 0.0, 1.0)):
            inputs = [f.uniform(*y), f.uniform(*a), f.uniform(*b)]
            if suffix == '_zero':
                inputs[0] = torch.full_like(inputs[0], NAN)
            f.listed(name + suffix, name, inputs,
                     lambda y, a, b, k=(beta, alpha): function(y, a, b, beta=k[0], alpha=k[1]), terms=20, beta=beta,
                     alpha=alpha)
    f.listed('addmm_number', 'addmm', [f.uniform(), f.uniform(3, 5), f.uniform(5, 4)], torch.addmm, terms=20)
    f.listed('addmm_row', 'addmm', [f.uniform(1, 4), f.uniform(3, 5), f.uniform(5, 4)], torch.addmm, terms=20)
    f.listed('addmm_nothing_inside', 'addmm', [f.uniform(4), f.uniform(3, 0), f.uniform(0, 4)], torch.addmm, terms=20)


EINSUMS = {
    'product': ('ij,jk->ik', (3, 4), (4, 5)), 'implicit': ('ij,jk', (3, 4), (4, 5)), 'implicit_order': ('ba,ca', (2, 3), (4, 3)),
    'upper': ('iB,BA', (2, 3), (3, 4)), 'batches': ('bij,bjk->bik', (2, 3, 4), (2, 4, 5)), 'diagonal': ('ii->i', (4, 4)), 'trace': ('ii', (4, 4)),
    'sum': ('ij->', (3, 4)), 'transpose': ('ij->ji', (3, 4)), 'same': ('ij->ij', (3, 4)), 'elementwise': ('ij,ij->ij', (3, 4), (3, 4)),
    'outer': ('i,j->ij', (3,), (4,)), 'numbers': (',->', (), ()), 'by_number': (',ij->ij', (), (2, 3)), 'bilinear': ('bn,anm,bm->ba', (2, 3), (5, 3, 4), (2, 4)),
    'ellipsis': ('...ij,...jk->...ik', (2, 1, 3, 4), (5, 4, 2)), 'ellipsis_implicit': ('i...,i...', (3, 2), (3, 2)), 'ellipsis_dropped': ('...i->i', (2, 3, 4)),
    'ellipsis_end': ('ij...,jk...->ik...', (2, 3, 4), (3, 5, 4)), 'one': ('ij,jk->ik', (3, 1), (4, 5)), 'blanks': (' i j , j k -> i k ', (3, 4), (4, 5)),
    'diagonals': ('iijj->ij', (3, 3, 2, 2)), 'unused': ('ij,kl->i', (3, 4), (2, 5)), 'attention': ('bhqd,bhkd->bhqk', (2, 3, 4, 5), (2, 3, 6, 5)),
    'empty': ('ij,jk->ik', (3, 0), (0, 5)), 'chain': ('ab,bc,cd,de->ae', (2, 3), (3, 4), (4, 5), (5, 2)),
}


def make(folder):
    f = GoldenFile('products', 71)
    products(f)
    with_a_term(f)
    for name, (equation, *shapes) in EINSUMS.items():
        f.case('einsum_' + name, 'einsum', [f.uniform(*s) for s in shapes], lambda *x, e=equation: torch.einsum(e, *x),
               terms=60, equation=equation.replace(' ', '_'))
    f.case('kron', 'kron', [f.uniform(2, 3), f.uniform(4, 1)], torch.kron, terms=12)
    f.case('kron_ranks', 'kron', [f.uniform(3), f.uniform(2, 2)], torch.kron, terms=12)
    for n in (0, 1, 2, 5):
        f.case('power_%d' % n, 'matrix_power', [f.uniform(2, 3, 3)], lambda x, n=n: torch.matrix_power(x, n),
               gradient=n > 0, terms=81, n=n)
    f.case('multi_dot', 'multi_dot', [f.uniform(3), f.uniform(3, 5), f.uniform(5, 2), f.uniform(2)], lambda *x: torch.linalg.multi_dot(x), terms=30)
    f.case('tensordot', 'tensordot', [f.uniform(2, 3, 4), f.uniform(3, 4, 5)], lambda a, b: torch.tensordot(a, b, 2), terms=12, n=2)
    f.case('tensordot_none', 'tensordot', [f.uniform(2, 3), f.uniform(2)], lambda a, b: torch.tensordot(a, b, 0), terms=6, n=0)
    f.case('power_inverse', 'matrix_power', [(f.uniform(2, 3, 3) + 2 * torch.eye(3)).float().double()],
           lambda x: torch.matrix_power(x, -2), terms=81, n=-2)
    f.save(folder)
