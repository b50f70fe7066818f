#!/usr/bin/env python3
"""Makes the golden files: PyTorch's results, for comparison in Koine's tests.

    python3 tests/golden/make_golden.py [FOLDER]        (default: the folder of this script)

The files in the repository were made on x86-64: most with PyTorch 2.15.0 (NumPy 2.4.6), images with torchvision 0.29.2
and Pillow 13.0.0 besides; the oldest with Debian 12's python3-torch 1.13.1 (NumPy 1.24.2). Each file's metadata names
the version under "torch". Inputs come from numpy.random.RandomState, whose streams never change, so another version of
PyTorch makes the same files up to rounding.

Values are computed in float64 from inputs that float32 holds exactly: the tests run both dtypes from one file.
"""
import os
import sys

import golden_attention
import golden_dtypes
import golden_linalg
import golden_elementwise
import golden_images
import golden_index
import golden_log
import golden_losses
import golden_pairs
import golden_composed
import golden_norm
import golden_norms
import golden_ops
import golden_optim_state
import golden_parametrize
import golden_products
import golden_rnn
import golden_run
import golden_sort
import golden_text
import golden_lbfgs
import golden_training
import golden_vision

MODULES = (
    golden_ops,
    golden_losses,
    golden_pairs,
    golden_composed,
    golden_norm,
    golden_norms,
    golden_text,
    golden_dtypes,
    golden_optim_state,
    golden_training,
    golden_lbfgs,
    golden_linalg,
    golden_rnn,
    golden_run,
    golden_index,
    golden_log,
    golden_elementwise,
    golden_vision,
    golden_sort,
    golden_attention,
    golden_products,
    golden_parametrize,
    golden_images,
)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    for module in MODULES:
        module.make(folder)
    total = 0
    for name in sorted(os.listdir(folder)):
        if name.endswith('.safetensors'):
            size = os.path.getsize(os.path.join(folder, name))
            total += size
            print('%-36s %8d bytes' % (name, size))
    print('%-36s %8d bytes' % ('in all', total))


if __name__ == '__main__':
    main()
