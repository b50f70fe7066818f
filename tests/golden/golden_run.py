"""The golden run: ten Adam steps of the examples' network without dropout, in both dtypes.

golden_run_weights.safetensors  the initial state dict, PyTorch's names, as PyTorch would save it
golden_run.safetensors          ten stored batches of 32 (drawn images: a blurred pattern per class under noise) and the
                                losses on them: loss_f32, loss_f64; if the Fashion-MNIST files are there, also those on
                                its first 1280 training images, ten batches of 128 in the file's order:
                                fashion_loss_f32, fashion_loss_f64
"""
import gzip
import os

import numpy as np
import torch

from golden_file import save_safetensors

STEPS = 10
FASHION = '/usr/share/datasets/fashion-mnist'


def network():
    net = torch.nn.Sequential()
    net.add_module('conv1', torch.nn.Conv2d(1, 32, kernel_size=3))
    net.add_module('pool1', torch.nn.MaxPool2d(2, 2))
    net.add_module('conv2', torch.nn.Conv2d(32, 64, kernel_size=5))
    net.add_module('pool2', torch.nn.MaxPool2d(2, 2))
    net.add_module('dropout', torch.nn.Dropout2d(p=0.0))
    net.add_module('adaptive_pool', torch.nn.AdaptiveMaxPool2d((1, 1)))
    net.add_module('flatten', torch.nn.Flatten())
    net.add_module('linear1', torch.nn.Linear(64, 32))
    net.add_module('relu', torch.nn.ReLU())
    net.add_module('linear2', torch.nn.Linear(32, 10))
    return net


def losses(weights, images, labels, batch, dtype):
    net = network()
    net.load_state_dict(weights)
    net.to(dtype)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    result = []
    for step in range(STEPS):
        # ToTensor: uint8 to [0, 1] in float32, then the dtype of the run.
        x = (images[step * batch:(step + 1) * batch].float() / 255).to(dtype).unsqueeze(1)
        loss = torch.nn.functional.cross_entropy(net(x), labels[step * batch:(step + 1) * batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.detach())
    return torch.stack(result)


def drawn_batches(count):
    """A smooth random pattern per class, shifted by up to two pixels, with noise."""
    random = np.random.RandomState(31)
    coarse = random.uniform(0, 1, (10, 7, 7))
    patterns = np.kron(coarse, np.ones((4, 4)))
    labels = random.randint(0, 10, count)
    images = np.empty((count, 28, 28))
    for i, label in enumerate(labels):
        moved = np.roll(patterns[label], random.randint(-2, 3, 2), axis=(0, 1))
        images[i] = 0.75 * moved + 0.25 * random.uniform(0, 1, (28, 28))
    return torch.from_numpy((images * 255).astype(np.uint8)), torch.from_numpy(labels.astype(np.int64))


def fashion_batches(count):
    def read(name, header, shape):
        with gzip.open(os.path.join(FASHION, name)) as file:
            pixels = np.frombuffer(file.read(), np.uint8, int(np.prod(shape)), header)
            return torch.from_numpy(pixels.reshape(shape).copy())

    return (read('train-images-idx3-ubyte.gz', 16, (count, 28, 28)),
            read('train-labels-idx1-ubyte.gz', 8, (count,)).long())


def make(folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weights = {name: value.detach().clone() for name, value in network().state_dict().items()}
    save_safetensors(os.path.join(folder, 'golden_run_weights.safetensors'), weights, {'format': 'pt'})

    images, labels = drawn_batches(32 * STEPS)
    tensors = {'images': images, 'labels': labels}
    sets = {'': (images, labels, 32)}
    if os.path.isdir(FASHION):
        sets['fashion_'] = (*fashion_batches(128 * STEPS), 128)
    for prefix, (images, labels, batch) in sets.items():
        for suffix, dtype in (('f32', torch.float32), ('f64', torch.float64)):
            tensors['%sloss_%s' % (prefix, suffix)] = losses(weights, images, labels, batch, dtype)
    save_safetensors(os.path.join(folder, 'golden_run.safetensors'), tensors, {'torch': torch.__version__})
