"""The programs of examples/python/torch_*.py, on little data."""
import os
import re
import struct

import pytest
import torch

EXAMPLES = os.path.join(os.path.dirname(__file__), '..', '..', 'examples', 'python')


@pytest.fixture
def example(run_python):
    """On one thread of PyTorch's: with more of them than free cores its CPU device takes minutes."""
    return lambda name, *arguments: run_python(os.path.join(EXAMPLES, name), arguments=arguments, timeout=300,
                                               environment={'OMP_NUM_THREADS': '1'})


def test_devices(example):
    printed = example('torch_devices.py')
    assert "on the device: ['koine:0', 'koine:0', 'koine:0', 'koine:0', 'koine:0', 'koine:0'] True" in printed
    assert "and back: ['cpu', 'cpu'] False True" in printed and 'the same tensor: True' in printed
    assert "batches: [('koine:0', [0, 1]), ('koine:0', [2, 3])]" in printed


def test_matmul(example):
    assert float(example('torch_matmul.py', '300').split()[-1]) < 1e-3


def test_linear_regression(example):
    """As on the CPU, and the line that the points were made of."""
    printed = example('torch_linear_regression.py', '10000')
    lines = re.findall(r'loss ([\d.]+), w \[\[(.*), (.*)\]\], b ([\d.]+)', printed)
    cpu, koine = ([float(number) for number in line] for line in lines)
    assert koine == pytest.approx(cpu, abs=1e-4)
    assert koine == pytest.approx([4, 2, -3, 10], abs=0.15)


def write_pictures(folder, which, count):
    """Files as MNIST's: a bright bar, whose place is the label."""
    labels = torch.arange(count) % 10
    pictures = torch.randint(0, 50, (count, 28, 28), generator=torch.Generator().manual_seed(count)).byte()
    for picture, label in zip(pictures, labels):
        picture[2 * int(label) + 3:2 * int(label) + 6] = 250
    for kind, header, data in (('images-idx3', struct.pack('>IIII', 0x803, count, 28, 28), pictures),
                               ('labels-idx1', struct.pack('>II', 0x801, count), labels.byte())):
        (folder / f'{which}-{kind}-ubyte').write_bytes(header + bytes(data.flatten().tolist()))


@pytest.mark.parametrize('further', [[], ['--compile']])
def test_classification(example, tmp_path, further):
    write_pictures(tmp_path, 'train', 640)
    write_pictures(tmp_path, 't10k', 200)
    printed = example('torch_classification.py', '--data', str(tmp_path), '--epochs', '4', '--workers', '1',
                      '--checkpoint', str(tmp_path / 'checkpoint.pt'), *further)
    assert float(re.search(r'the best accuracy: ([\d.]+)', printed)[1]) > 0.5
    assert 'fallbacks: {}' in printed
