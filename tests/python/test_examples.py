"""The examples run, and learn."""
import os
import re
import struct
import subprocess
import sys

import numpy
from conftest import ROOT

FOLDER = os.path.join(ROOT, 'examples', 'python')


def run(name, *arguments):
    done = subprocess.run([sys.executable, os.path.join(FOLDER, name), *arguments], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_linear_regression():
    out = run('linear_regression.py')
    assert "w ['2.00" in out.replace("'1.99", "'2.00") and float(re.search(r'loss ([\d.]+)', out).group(1)) < 2e-4


def write_images(folder, name, count):
    """Files in MNIST's format, of which the class is where the bright square is."""
    labels = numpy.arange(count) % 10
    images = numpy.random.randint(0, 30, (count, 28, 28)).astype('uint8')
    for image, label in zip(images, labels):
        row, column = divmod(label, 4)
        image[row * 8:row * 8 + 6, column * 7:column * 7 + 6] = 200 + label * 5
        image[:, ::int(label) + 2] += 20
    for kind, header, data in (('images-idx3', struct.pack('>IIII', 0x803, count, 28, 28), images),
                               ('labels-idx1', struct.pack('>II', 0x801, count), labels.astype('uint8'))):
        with open(os.path.join(folder, '%s-%s-ubyte' % (name, kind)), 'wb') as file:
            file.write(header + data.tobytes())


def test_fashion_mnist(tmp_path):
    write_images(tmp_path, 'train', 1280)
    write_images(tmp_path, 't10k', 256)
    out = run('fashion_mnist.py', '--data', str(tmp_path), '--epochs', '2', '--limit', '10')
    accuracies = [float(one) for one in re.findall(r'accuracy ([\d.]+)', out)]
    losses = [float(one) for one in re.findall(r'loss ([\d.]+)', out)]
    assert len(accuracies) == 2 and losses[1] < losses[0] and accuracies[1] > 0.3


def test_readme():
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
        code, = re.findall(r'```python\n(import koine\n.*?)```', file.read(), re.DOTALL)
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.01
