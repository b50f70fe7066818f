#!/usr/bin/env python3
"""Prints python/torch_koine/csrc/operators/table.inc: the operators of PyTorch that are one operator of Koine with the
same arguments.

    python3 python/tools/match_operators.py build/lib/libkoine.so > python/torch_koine/csrc/operators/table.inc

An operator of PyTorch gets a row if it needs a kernel, none is written by hand, and Koine has an operator of that name
with the same tensors and a parameter for each other argument; or if ROWS names Koine's operator. table.cpp checks the
rows again when it is loaded. Needs PyTorch."""
import functools
import glob
import os
import re
import sys

import torch

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TREE, 'tests', 'compare'))
from operators import Library  # noqa: E402

# Arguments that are called otherwise in Koine, as table.cpp knows them.
RENAMED = {'dim': 'dims', 'kernel_size': 'kernel_sizes', 'stride': 'strides', 'padding': 'paddings',
           'dilation': 'dilations', 'other': 'value'}

# The same name, another meaning or order of arguments.
DIFFERENT = {'bucketize.Scalar', 'cat.out', 'index.Tensor_out', 'unfold_backward', 'max.dim_max', 'min.dim_min',
             'median.dim_values', 'nanmedian.dim_values', 'batch_norm_backward', 'argmax.out', 'argmin.out',
             'linalg_qr.out', 'put_', 'clamp.Tensor_out', 'as_strided', 'fill_.Tensor', 'masked_fill_.Tensor',
             'lerp.Scalar_out', 'scatter.reduce_out', 'scatter.value_reduce_out', 'unfold',
             'fractional_max_pool2d.output',
             'fractional_max_pool3d.output', 'where.self', 'roll', 'mode', 'mvlgamma.out', 'hash_tensor'}

# Koine's operator, and its parameters by the arguments' names; "-" before those without a counterpart.
ROWS = {
    '_adaptive_avg_pool2d': ('adaptive_avg_pool2d', ''),
    '_adaptive_avg_pool3d': ('adaptive_avg_pool3d', ''),
    '_log_softmax.out': ('log_softmax', '-half_to_float'),
    '_log_softmax_backward_data.out': ('log_softmax_backward', '-input_dtype'),
    '_logcumsumexp': ('logcumsumexp', ''),
    '_logcumsumexp.out': ('logcumsumexp', ''),
    '_prelu_kernel': ('prelu', ''),
    '_softmax.out': ('softmax', '-half_to_float'),
    '_softmax_backward_data.out': ('softmax_backward', '-input_dtype'),
    'adaptive_max_pool2d.out': ('adaptive_max_pool2d_with_indices', ''),
    'adaptive_max_pool3d.out': ('adaptive_max_pool3d_with_indices', ''),
    'gather.out': ('gather', '-sparse_grad'),
    'linalg_vector_norm.out': ('norm', 'p=ord'),
    'max.dim_max': ('max_dim', ''),
    'median.dim_values': ('median_dim', ''),
    'min.dim_min': ('min_dim', ''),
    'nanmedian.dim_values': ('nanmedian_dim', ''),
    'nll_loss_backward.grad_input': ('nll_loss_backward', '-total_weight'),
    'nll_loss2d_backward.grad_input': ('nll_loss_backward', '-total_weight'),
    'nll_loss2d_backward': ('nll_loss_backward', '-total_weight'),
    'roll': ('roll', ''),
}


def overload(schema):
    return schema.name.removeprefix('aten::') + ('.' + schema.overload_name if schema.overload_name else '')


@functools.cache
def set_of_operators():
    return frozenset(torch._C._dispatch_get_all_op_names())


def needs_kernel(schema):
    """No composite stands for it on a new device."""
    name = 'aten::' + overload(schema)
    if name not in set_of_operators():
        return False  # TorchScript's own
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return has(name, 'CPU') and not any(has(name, 'Composite' + kind) for kind in (
        'ImplicitAutograd', 'ExplicitAutograd', 'ExplicitAutogradNonFunctional'))


def by_hand():
    names = set()
    for path in glob.glob(os.path.join(TREE, 'python', 'torch_koine', 'csrc', '**', '*.cpp'), recursive=True):
        if os.path.basename(path) == 'autocast.cpp':  # for another dispatch key
            continue
        with open(path, encoding='utf-8') as file:
            text = file.read()
        names.update(re.findall(r'm\.impl\("([^"]+)"', text))
        # the lists of pointwise.cpp
        for body in re.findall(r'#define UNARY_OPERATORS\(X\)(.*?)\n\n', text, re.S):
            names.update(name + '.out' for name in re.findall(r'X\((\w+)\)', body))
        for body in re.findall(r'#define BINARY_OPERATORS\(X\)(.*?)\n#', text, re.S):
            names.update(f'{name}.{form}' for name, form in re.findall(r'X\((\w+), "(\w+)"\)', body))
        for body in re.findall(r'#define COMPARISONS\(X\)(.*?)\n', text):
            names.update(name + '.Scalar_out' for name in re.findall(r'X\((\w+)\)', body))
    return names


def is_tensor(argument):
    return str(argument.type) in ('Tensor', 'Optional[Tensor]')


def fits(schema, operator):
    """Every argument of the schema has its place."""
    inputs = 0
    for argument in schema.arguments:
        written = argument.alias_info is not None and argument.alias_info.is_write
        if is_tensor(argument):
            inputs += not (written and argument.kwarg_only)
            if argument.name in operator.params:
                return False
        elif 'Tensor' in str(argument.type):
            return False
        elif argument.name not in operator.params and argument.name != 'dtype' \
                and RENAMED.get(argument.name) not in operator.params:
            return False
    required = sum(not given.is_optional for given in operator.inputs)
    return required <= inputs <= len(operator.inputs) and len(schema.returns) <= operator.num_outputs


def main():
    library = Library(sys.argv[1])
    written = by_hand()
    found = {}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith('aten::'):
            continue
        name = overload(schema)
        if name in written:
            continue
        if name in ROWS:
            found[name] = ROWS[name]
            continue
        if name in DIFFERENT or not needs_kernel(schema):
            continue
        base = name.split('.')[0]
        for operator in (base, base.removeprefix('special_')):
            if operator in library.operators and fits(schema, library.operators[operator]):
                found[name] = (operator, '')
    for name in sorted(found):
        print('{"%s", "%s", "%s"},' % (name, *found[name]))


if __name__ == '__main__':
    main()
