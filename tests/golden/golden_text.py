"""Golden text: what PyTorch prints."""
import os

import numpy as np
import torch

from golden_file import save_safetensors


def printing(folder):
    random = np.random.RandomState(11)
    nan, inf = float('nan'), float('inf')
    half_filled = torch.zeros(2, 3)
    half_filled[1, 1] = 1.5
    cases = {
        'integer': torch.tensor([1, 2, 3]),
        'integer_widths': torch.tensor([[1, -20], [300, 4]]),
        'int32': torch.tensor([1, -2, 3], dtype=torch.int32),
        'uint8': torch.tensor([[0, 255], [7, 30]], dtype=torch.uint8),
        'bool': torch.tensor([[True, False], [False, False]]),
        'bool_true': torch.tensor([True, True]),
        'float': torch.tensor([0.5, 1.25, -3.0]),
        'float_whole': torch.tensor([1.0, 2.0, -3.0]),
        'float_whole_large': torch.tensor([1.0, 123456.0]),
        'float_whole_scientific': torch.tensor([1.0, 1e9]),
        'float_rounding': torch.tensor([0.00005, 0.99995, 1.00005, 2.5]),
        'float_scientific_small': torch.tensor([1e-5, 1.0]),
        'float_scientific_ratio': torch.tensor([0.001, 5000.0]),
        'float_scientific_large': torch.tensor([1e8 + 0.0, 0.5]),
        'float_just_below_scientific': torch.tensor([0.1, 99.99]),
        'float_negative_zero': torch.tensor([0.0, -0.0, 1.5]),
        'float_tiny': torch.tensor([1e-38, 1e-40]),
        'float_nan': torch.tensor([1.5, nan, -2.25]),
        'float_inf': torch.tensor([inf, -inf, 0.125]),
        'float_only_nan': torch.tensor([nan, nan]),
        'float_only_inf': torch.tensor([inf, -inf]),
        'float_whole_and_nan': torch.tensor([1.0, nan, 3.0]),
        'float_zeros': torch.zeros(2, 2),
        'float_half_filled': half_filled,
        'float64': torch.tensor([0.1, 1 / 3], dtype=torch.float64),
        'float64_scientific': torch.tensor([1e-200, 1e200], dtype=torch.float64),
        'float16': torch.tensor([0.1, 2.5, 60000.0], dtype=torch.float16),
        'float16_small': torch.tensor([[1.0, 0.333]], dtype=torch.float16),
        'bfloat16': torch.tensor([0.1, 2.5, -60000.0], dtype=torch.bfloat16),
        'bfloat16_large': torch.tensor([1.0, 3e38, inf, nan], dtype=torch.bfloat16),
        'bfloat16_whole': torch.tensor([[256.0, -3.0]], dtype=torch.bfloat16),
        'int8': torch.tensor([[-128, 127], [0, 7]], dtype=torch.int8),
        'int16': torch.tensor([-32768, 32767, 5], dtype=torch.int16),
        'scalar_float': torch.tensor(3.14159265),
        'scalar_whole': torch.tensor(3.0),
        'scalar_large': torch.tensor(123456789.0),
        'scalar_small': torch.tensor(1.5e-7),
        'scalar_nan': torch.tensor(nan),
        'scalar_infinity': torch.tensor(-inf),
        'scalar_integer': torch.tensor(-7),
        'scalar_bool': torch.tensor(True),
        'scalar_float64': torch.tensor(2.5, dtype=torch.float64),
        'empty': torch.empty(0),
        'empty_2d': torch.empty(2, 0),
        'empty_3d': torch.empty(0, 3, 4),
        'empty_integer': torch.empty(0, dtype=torch.int64),
        'empty_integer_2d': torch.empty(0, 2, dtype=torch.int64),
        'empty_bool': torch.empty(0, dtype=torch.bool),
        'empty_float64': torch.empty(3, 0, dtype=torch.float64),
        'matrix': torch.from_numpy(random.uniform(-1, 1, (3, 4)).astype(np.float32)),
        'matrix_widths': torch.tensor([[0.5, -10.25], [100.125, 3.0]]),
        'cube': torch.arange(12).reshape(2, 3, 2),
        'cube_float': torch.from_numpy(random.uniform(-1, 1, (2, 2, 3)).astype(np.float32)),
        'four_dimensions': torch.arange(16.0).reshape(2, 2, 2, 2),
        'long_line': torch.arange(40),
        'long_line_float': torch.from_numpy(random.uniform(-100, 100, 30).astype(np.float32)),
        'long_rows': torch.from_numpy(random.uniform(-1, 1, (2, 17)).astype(np.float32)),
        'thousand': torch.arange(1000),
        'thousand_and_one': torch.arange(1001),
        'thousand_and_one_float': torch.arange(1001) / 8,
        'summarised_matrix': torch.arange(1025).reshape(25, 41),
        'summarised_tall': torch.arange(1200).reshape(300, 4),
        'summarised_cube': torch.arange(1008).reshape(7, 18, 8),
        'summarised_hides_the_large': torch.cat([torch.zeros(600), torch.full((1,), 1e9), torch.ones(600)]),
        'summarised_int32': torch.arange(1001, dtype=torch.int32),
        'summarised_bool': torch.arange(1002) % 3 == 0,
        'summarised_six_rows': torch.arange(1206).reshape(6, 201),
        'requires_grad': torch.tensor([1.0, 2.5]),
    }
    metadata = {'torch': torch.__version__, 'cases': ' '.join(cases)}
    for name, tensor in cases.items():
        metadata[name] = repr(tensor.requires_grad_(name == 'requires_grad'))
    save_safetensors(os.path.join(folder, 'printing.safetensors'), cases, metadata)


def make(folder):
    printing(folder)
