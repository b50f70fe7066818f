"""Golden cases of scaled dot-product attention, and modules and networks with it: weights as PyTorch saves them, inputs
and outputs.

attention.safetensors          cases of the operator
attention_weights.safetensors  the state dict of a ModuleDict, as PyTorch saves it
attention_run.safetensors      cases of its modules: inputs, outputs, the gradient of the first input, or if that is
                               integers of wte.weight
"""
import os

import torch
import torch.nn.functional as F
import torchvision
from transformers import GPT2Config, GPT2Model

from golden_file import GoldenFile, exact, save_safetensors

INF = float('inf')


def operator(folder):
    f = GoldenFile('attention', 72)

    def case(name, q, k, v, mask=None, gradient=True, factor=1.0, **params):
        inputs = [exact(factor * f.uniform(*s)) for s in (q, k, v)]
        given = dict(params)
        f.listed(name, 'scaled_dot_product_attention', inputs + ([mask] if mask is not None else []),
                 lambda q, k, v, m=None: F.scaled_dot_product_attention(q, k, v, m, **given), gradient=gradient,
                 terms=k[-2] * 4, **params)

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


class Gpt(GPT2Model):
    """With its head, which shares the embedding's weight."""

    def forward(self, tokens):
        return F.linear(super().forward(tokens).last_hidden_state, self.wte.weight)


def network():
    n = torch.nn
    sizes = GPT2Config(vocab_size=7, n_positions=6, n_embd=8, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0,
                       attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    layer = {'d_model': 8, 'nhead': 2, 'dim_feedforward': 12, 'dropout': 0.0}
    return n.ModuleDict({
        'plain': n.MultiheadAttention(8, 2),
        'other_sizes': n.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True, kdim=5, vdim=7,
                                            batch_first=True),
        'no_bias': n.MultiheadAttention(6, 2, bias=False, batch_first=True),
        'encoder': n.TransformerEncoder(n.TransformerEncoderLayer(**layer, batch_first=True), 2, norm=n.LayerNorm(8),
                                        enable_nested_tensor=False),
        'first': n.TransformerEncoderLayer(**layer, activation='gelu', norm_first=True, bias=False),
        'decoder': n.TransformerDecoder(n.TransformerDecoderLayer(**layer), 2),
        'transformer': n.Transformer(8, 2, 1, 1, 12, 0.0, batch_first=True),
        'gpt2': Gpt(sizes),
        'vit': torchvision.models.VisionTransformer(8, 4, 2, 2, 8, 12, num_classes=3),
    })


def modules(folder):
    """NAME of the ModuleDict's `module` is called with in0, in1, ..., where the omitted ones are missing."""
    f = GoldenFile('unused', 73)
    torch.manual_seed(3)
    nets = network()
    with torch.no_grad():
        for p in nets.parameters():
            p += 0.1 * f.uniform(*p.shape).float()
    save_safetensors(os.path.join(folder, 'attention_weights.safetensors'), nets.state_dict(), {'format': 'pt'})
    nets = nets.double()
    tensors, metadata = {}, {'torch': torch.__version__}

    def case(name, module, inputs, call):
        nets.zero_grad()
        inputs = [x if x is None else x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
        outputs = call(nets[module], *inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        gout = f.uniform(*outputs[0].shape)
        outputs[0].backward(gout)
        metadata[name] = 'module=' + module
        tensors[name + '/gout'] = gout.float()
        for i, x in enumerate(inputs):
            if x is not None:
                tensors['%s/in%d' % (name, i)] = x.float() if x.is_floating_point() else x
        tensors[name + '/grad0'] = inputs[0].grad if inputs[0].is_floating_point() else nets[module].wte.weight.grad
        for i, y in enumerate(outputs):
            tensors[name + '/out%s' % (i or '')] = y

    def masked(*shape):
        mask = torch.from_numpy(f.random.rand(*shape) < 0.4)
        mask[..., 0] = False
        return mask

    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    u = f.uniform
    three = (u(4, 2, 8), u(5, 2, 8), u(5, 2, 8))
    case('plain', 'plain', three, lambda m, q, k, v: m(q, k, v, need_weights=False)[0])
    case('weights', 'plain', three, lambda m, q, k, v: m(q, k, v))
    case('weights_of_heads', 'plain', three, lambda m, q, k, v: m(q, k, v, average_attn_weights=False))
    case('masks', 'plain', three + (masked(2, 5), masked(4, 4, 5).reshape(4, 4, 5)),
         lambda m, q, k, v, p, a: m(q, k, v, key_padding_mask=p, attn_mask=a, need_weights=False)[0])
    case('terms', 'plain', three + (None, u(4, 5)), lambda m, q, k, v, p, a: m(q, k, v, attn_mask=a, need_weights=False)[0])
    case('self', 'plain', (u(4, 2, 8),), lambda m, x: m(x, x, x, need_weights=False)[0])
    case('no_batch', 'plain', (u(4, 8), u(5, 8), u(5, 8)), lambda m, q, k, v: m(q, k, v))
    other = (u(2, 4, 6), u(2, 5, 5), u(2, 5, 7), masked(2, 5))
    case('other_sizes', 'other_sizes', other, lambda m, q, k, v, p: m(q, k, v, key_padding_mask=p, need_weights=False)[0])
    case('no_bias', 'no_bias', (u(2, 4, 6), u(2, 3, 6), u(2, 3, 6)), lambda m, q, k, v: m(q, k, v, need_weights=False)[0])
    case('encoder', 'encoder', (u(2, 4, 8),), lambda m, x: m(x))
    case('encoder_masks', 'encoder', (u(2, 4, 8), causal, masked(2, 4)), lambda m, x, a, p: m(x, a, p))
    case('causal', 'encoder', (u(2, 4, 8),), lambda m, x: m(x, causal))
    case('first', 'first', (u(4, 2, 8),), lambda m, x: m(x))
    case('decoder', 'decoder', (u(4, 2, 8), u(5, 2, 8)), lambda m, x, y: m(x, y))
    case('decoder_masks', 'decoder', (u(4, 2, 8), u(5, 2, 8), causal, masked(4, 5), masked(2, 4), masked(2, 5)),
         lambda m, x, y, a, b, p, r: m(x, y, a, b, p, r))
    case('transformer', 'transformer', (u(2, 3, 8), u(2, 4, 8)), lambda m, x, y: m(x, y))
    case('transformer_masks', 'transformer', (u(2, 3, 8), u(2, 4, 8), None, causal, None, masked(2, 3), None, masked(2, 3)),
         lambda m, x, y, a, b, c, p, r, s: m(x, y, tgt_mask=b, src_key_padding_mask=p, memory_key_padding_mask=s))
    case('gpt2', 'gpt2', (torch.from_numpy(f.random.randint(0, 7, (2, 5))),), lambda m, x: m(x))
    case('vit', 'vit', (u(2, 3, 8, 8),), lambda m, x: m(x))
    metadata['cases'] = ' '.join(metadata.keys() - {'torch'})
    metadata['cases'] = ' '.join(sorted(metadata['cases'].split()))
    save_safetensors(os.path.join(folder, 'attention_run.safetensors'), tensors, metadata)


def make(folder):
    operator(folder)
    modules(folder)
