#!/usr/bin/env python3
"""PyTorch's own samples of its operators, on the device koine and on the CPU: results and gradients in float32.

    python3 tests/torch_koine/opinfo.py                        # a line for each operator, and a summary
    python3 tests/torch_koine/opinfo.py --only softmax --samples 50 --verbose
    python3 tests/torch_koine/opinfo.py --table table.md       # and the Markdown table

A sample passes if results and gradients have the CPU's shapes and dtypes and are close to its values. One that the CPU
refuses is skipped, as are random operators and samples of dtypes that the device does not take. "fallback": the
operator needed the CPU for one of its kernels. Run it with the environment of tests/torch_koine/run.sh, and with the
package expecttest, which PyTorch's samples import."""
import argparse
import collections
import faulthandler
import itertools
import os
import sys
import time
import warnings

warnings.simplefilter('ignore')
import torch  # noqa: E402

if not hasattr(torch, 'koine'):
    import torch_koine  # noqa: F401
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.opinfo.core import SampleInput  # noqa: E402,F401
from torch.utils._pytree import tree_flatten, tree_map_only  # noqa: E402

# Results depend on random numbers, on memory that is not initialised, or on the machine.
RANDOM = {'bernoulli', 'cauchy', 'empty', 'empty_like', 'empty_permuted', 'empty_strided', 'exponential', 'geometric',
          'log_normal', 'multinomial', 'new_empty', 'new_empty_strided', 'nn.functional.alpha_dropout',
          'nn.functional.dropout', 'nn.functional.dropout2d', 'nn.functional.dropout3d',
          'nn.functional.feature_alpha_dropout', 'nn.functional.fractional_max_pool2d',
          'nn.functional.fractional_max_pool3d', 'nn.functional.rrelu', 'normal', 'normal_', 'rand_like', 'randint',
          'randint_like', 'randn', 'randn_like', 'uniform', 'bfloat16', 'pca_lowrank', 'svd_lowrank', 'randint_like',
          'nn.functional.multi_head_attention_forward', 'tensor', 'native_dropout_backward', 'rand', 'resize_',
          'resize_as_', 'linalg.svd_lowrank', 'torch.randn', 'randperm'}
TAKES = {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
         torch.uint8, torch.bool, torch.complex64, torch.complex128}


class Counts:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.first, self.fallbacks = 0, 0, 0, None, set()


def tensors_of(tree):
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def copied(x, device):
    """With the whole storage behind a view: operators such as as_strided reach beyond it."""
    if x.layout != torch.strided or x.untyped_storage().nbytes() <= x.numel() * x.element_size():
        return x.detach().to(device)
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).to(device)
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def moved(tree, device):
    def move(x):
        y = copied(x, device)
        return y.requires_grad_(x.requires_grad) if x.is_leaf else y
    return tree_map_only(torch.Tensor, move, tree)


def run(op, sample, device):
    """Results, then the gradients of a weighted sum of them."""
    arguments = moved((sample.input, sample.args, sample.kwargs), device)
    if op.name == 'tensor_split':  # takes its places on the CPU, on any device
        arguments = arguments[0], sample.args, sample.kwargs
    if device != 'cpu':
        arguments = (arguments[0], arguments[1],
                     {k: torch.device(device) if isinstance(v, (str, torch.device)) and k == 'device' else v
                      for k, v in arguments[2].items()})
    results = op.op(arguments[0], *arguments[1], **arguments[2])
    outputs = tensors_of(results)
    leaves = [x for x in tensors_of(arguments) if x.requires_grad]
    ends = [y for y in outputs if y.requires_grad and y.is_floating_point()]
    gradients = []
    if ends and leaves and op.supports_autograd:
        generator = torch.Generator().manual_seed(1)
        weights = [torch.rand(y.shape, generator=generator).to(y.dtype).to(y.device) for y in ends]
        loss = sum((y * w).sum() for y, w in zip(ends, weights))
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    everything = [y.detach() for y in outputs] + list(gradients)
    return [None if y is None else y.cpu() for y in everything]


def compare(op, got, wanted):
    if len(got) != len(wanted):
        return f'{len(got)} tensors instead of {len(wanted)}'
    for i, (a, b) in enumerate(zip(got, wanted)):
        if a is None or b is None:
            if (a is None) != (b is None):
                return f'tensor {i} is {"missing" if a is None else "not missing"}'
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f'tensor {i}: {a.dtype} {tuple(a.shape)} instead of {b.dtype} {tuple(b.shape)}'
        if a.is_complex():
            a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
        if not torch.allclose(a.double(), b.double(), rtol=2e-4, atol=2e-5, equal_nan=True):
            error = (a.double() - b.double()).abs()
            worst = error[~error.isnan()].max().item()
            return f'tensor {i} of {tuple(a.shape)}: off by {worst:.3g}'
    return None


def samples_of(op, dtype, most):
    return itertools.islice(op.sample_inputs('cpu', dtype, requires_grad=op.supports_autograd), most)


def check_operator(op, most, verbose):
    counts = Counts()
    torch.koine.reset_fallbacks()
    for sample in samples_of(op, torch.float32, most):
        if sample.kwargs.get('dropout_p') or any(x.dtype not in TAKES or x.layout != torch.strided for x in
                                                 tensors_of((sample.input, sample.args, sample.kwargs))):
            counts.skipped += 1
            continue
        try:
            torch.manual_seed(0)
            wanted = run(op, sample, 'cpu')
        except Exception:
            counts.skipped += 1
            continue
        if any(x is not None and x.dtype not in TAKES for x in wanted):
            counts.skipped += 1
            continue
        try:
            torch.manual_seed(0)
            problem = compare(op, run(op, sample, 'koine'), wanted)
        except Exception as error:
            problem = f'{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ""}'
        if problem is None:
            counts.passed += 1
            continue
        counts.failed += 1
        counts.first = counts.first or problem
        if verbose:
            print('   ', op.name, sample.summary()[:200] if hasattr(sample, 'summary') else '', problem)
    counts.fallbacks = set(torch.koine.fallbacks())
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--only', help='operators whose names contain this; several: separated by commas')
    parser.add_argument('--samples', type=int, default=8, help='at most so many of each operator')
    parser.add_argument('--table', help='write the Markdown table of failures and fallbacks here')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('--seconds', type=float, help='stop after so much time')
    parser.add_argument('--part', default='0/1', help='i/n: only each n-th operator')
    options = parser.parse_args()
    faulthandler.enable()
    part, parts = map(int, options.part.split('/'))
    results, began = collections.OrderedDict(), time.time()
    for index, op in enumerate(op_db):
        name = op.name + ('.' + op.variant_test_name if op.variant_test_name else '')
        if index % parts != part or torch.float32 not in op.supported_dtypes('cpu') or op.name in RANDOM:
            continue
        if options.only and not any(part in name for part in options.only.split(',')):
            continue
        if options.seconds and time.time() - began > options.seconds:
            break
        print(f'{name:50s}', end=' ', flush=True)
        try:
            counts = results[name] = check_operator(op, options.samples, options.verbose)
        except Exception as error:  # in making samples
            print('no samples:', error)
            continue
        print(f'{counts.passed:4d} passed {counts.failed:4d} failed {counts.skipped:4d} skipped', counts.first or '',
              ' '.join(sorted('fallback:' + f for f in counts.fallbacks)), flush=True)
    passed, failed = (sum(getattr(c, kind) for c in results.values()) for kind in ('passed', 'failed'))
    clean = sum(c.failed == 0 for c in results.values())
    print(f'{passed} of {passed + failed} samples ({100 * passed / max(passed + failed, 1):.1f} %), '
          f'{clean} of {len(results)} operators without a failure')
    if options.table:
        with open(options.table, 'w', encoding='utf-8') as file:
            file.write('| operator | samples passed | failed | first failure |\n| --- | --- | --- | --- |\n')
            for name, c in results.items():
                if c.failed:
                    file.write(f'| `{name}` | {c.passed} | {c.failed} | {(c.first or "").replace("|", "/")} |\n')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
