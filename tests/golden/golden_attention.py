"""Golden cases of scaled dot-product attention, and modules with it: weights as PyTorch saves them, inputs and outputs.

attention.safetensors          cases of the operator
attention_modules.safetensors  for each module NAME/weights..., NAME/in0, ..., NAME/out, NAME/out1
"""
import os

import torch
import torch.nn.functional as F

from golden_file import GoldenFile, exact, save_safetensors

INF = float('inf')


def operator(folder):
    f = GoldenFile('attention', 72)

    def case(name, q, k, v, mask=None, gradient=True, factor=1.0, **params):
        inputs = [exact(factor * f.uniform(*s)) for s in (q, k, v)]
        given = dict(params)
        f.listed(name, 'scaled_dot_product_attention', inputs + ([mask] if mask is not None else []),
                 lambda q, k, v, m=None: F.scaled_dot_product_attention(q, k, v, m, **given), gradient=gradient, terms=k[-2] * 4, **params)

    case('plain', (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
    case('matrices', (5, 4), (7, 4), (7, 3))
    case('three', (2, 5, 4), (2, 7, 4), (2, 7, 3))
    case('scale', (2, 5, 4), (2, 7, 4), (2, 7, 3), scale=-0.75)
    case('causal', (1, 2, 7, 5), (1, 2, 7, 5), (1, 2, 7, 5), is_causal=True)
    case('causal_more_keys', (2, 3, 5), (2, 11, 5), (2, 11, 5), is_causal=True)
    case('causal_more_queries', (2, 13, 5), (2, 3, 5), (2, 3, 5), is_causal=True)
    case('one_query', (1, 2, 1, 8), (1, 2, 131, 8), (1, 2, 131, 8))
    case('one_key', (1, 2, 17, 3), (1, 2, 1, 3), (1, 2, 1, 3))
    case('large', (1, 2, 5, 16), (1, 2, 7, 16), (1, 2, 7, 16), factor=5.0, scale=1.0)
    case('huge', (1, 2, 5, 16), (1, 2, 7, 16), (1, 2, 7, 16), factor=100.0, scale=1.0, gradient=False)
    case('grouped', (2, 6, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), enable_gqa=True)
    case('grouped_causal', (1, 4, 67, 4), (1, 1, 67, 4), (1, 1, 67, 4), enable_gqa=True, is_causal=True)
    for width in (1, 3, 17, 64, 65, 128):
        case('width_%d' % width, (1, 1, 3, width), (1, 1, 5, width), (1, 1, 5, width))
    mask = torch.from_numpy(f.random.rand(2, 1, 5, 7) < 0.6)
    mask[0, 0, 2] = False  # a query that sees nothing
    mask[:, :, 4] = False
    mask[:, :, 4, 6] = True
    case('mask', (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), mask)
    case('mask_of_keys', (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), torch.tensor([[True, False, True, True, False, True, False]]))
    case('mask_nothing', (2, 5, 4), (2, 7, 4), (2, 7, 6), torch.zeros(5, 7, dtype=torch.bool))
    terms = f.uniform(5, 7, low=-3, high=3)
    case('terms', (2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6), terms)
    hidden = torch.where(mask[:, 0], 0.0, -INF).double()
    case('terms_hidden', (2, 5, 4), (2, 7, 4), (2, 7, 6), hidden, gradient=False)
    case('terms_lowest', (2, 5, 4), (2, 7, 4), (2, 7, 6), exact(torch.where(mask[:, 0], 0.0, torch.finfo(torch.float32).min)), gradient=False)
    case('terms_of_rows', (2, 5, 4), (2, 7, 4), (2, 7, 6), f.uniform(5, 1, low=-3, high=3), gradient=False)
    q = f.uniform(2, 4, 3)
    q[0, 1, 1] = INF
    f.listed('special', 'scaled_dot_product_attention', [q, f.uniform(2, 6, 3), f.uniform(2, 6, 3)], F.scaled_dot_product_attention, gradient=False, terms=24)
    f.save(folder)


def make(folder):
    operator(folder)
