#!/usr/bin/env python3
"""The networks of koine/models.h against PyTorch's: from the same file, the same outputs and gradients.

    python3 tests/compare_models.py                     # all of them
    python3 tests/compare_models.py resnet50 unet

Each network is made by torchvision with random weights and running estimates, and its state dict is written as
safetensors. Koine loads it, strictly, and both compute logits in evaluation mode, in float32, and the gradients of a loss
in training mode, in float64. It is run by hand; it needs torchvision, PyTorch and build/lib/libkoine.so."""

import argparse
import ctypes
import os
import sys
import tempfile

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("compare", "support", "golden"):
    sys.path.insert(0, os.path.join(HERE, folder))
from golden_file import save_safetensors  # noqa: E402
from koine_ctypes import BOOL, DOUBLE, I64T, INT, Refused, VOID, library_path  # noqa: E402
from operators import Library  # noqa: E402

TOLERANCE = 1e-4


class ModelsParams(ctypes.Structure):
    _fields_ = [("num_classes", I64T), ("in_channels", I64T), ("dropout", DOUBLE),
                ("stochastic_depth", DOUBLE), ("small_images", BOOL)]


class ParameterList(ctypes.Structure):
    _fields_ = [("tensors", ctypes.POINTER(VOID)), ("names", ctypes.POINTER(ctypes.c_char_p)), ("count", INT)]


# name: size of the images
VISION = {"alexnet": 96, "vgg11": 64, "vgg16_bn": 64, "resnet18": 64, "resnet34": 64, "resnet50": 64, "resnet101": 64,
          "resnet152": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64, "mobilenet_v2": 64, "mobilenet_v3_large": 64,
          "mobilenet_v3_small": 64, "efficientnet_b0": 64, "densenet121": 64, "densenet161": 64, "densenet169": 64,
          "densenet201": 64}


def vision(name):
    import torchvision
    return getattr(torchvision.models, name)(num_classes=11)


def randomised(net):
    """Estimates and biases other than 0 and 1, so that a swap shows."""
    generator = torch.Generator().manual_seed(1)
    for name, value in net.state_dict().items():
        if name.endswith("running_mean") or name.endswith("bias"):
            value.copy_(0.1 * torch.randn(value.shape, generator=generator))
        if name.endswith("running_var"):
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
    return net


class Network:
    """A module of Koine with the weights of a file."""

    def __init__(self, k, name, path):
        self.k = k
        k.lib.kn_module_parameters.restype = ParameterList
        # no dropout: masks differ
        self.module = VOID(k.call("kn_models_new_with", name.encode(), ctypes.byref(ModelsParams(11, 3, 0.0, 0.0, False))))
        k.do("kn_module_load_with", self.module, path.encode(), None)

    def forward(self, x, training):
        self.k.lib.kn_module_train(self.module, BOOL(training))
        return self.k.call("kn_forward", self.module, VOID(self.k.from_torch(x)[0]))

    def gradients(self):
        found = self.k.lib.kn_module_parameters(self.module)
        return {found.names[i].decode(): self.k.gradient_of(found.tensors[i]) for i in range(found.count)}


def error(a, b):
    """The largest difference, relative to the largest value."""
    return ((a - b).abs().max() / b.abs().max().clamp(min=1e-6)).item()


def compare(k, name):
    torch.manual_seed(0)
    net = randomised(vision(name))
    for module in net.modules():
        if "Dropout" in type(module).__name__ or "StochasticDepth" in type(module).__name__:
            module.p = 0.0
    size = VISION[name]
    x = torch.randn(4, 3, size, size)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name + ".safetensors")
        save_safetensors(path, {key: value.contiguous() for key, value in net.state_dict().items()}, {"format": "pt"})
        k.begin()
        mine = Network(k, name, path)
    with torch.no_grad():
        worst = error(k.to_torch(mine.forward(x, False)), net.eval()(x))
    net, x = net.double(), x.double()  # batch norm of few values amplifies rounding errors
    k.do("kn_module_to_dtype", mine.module, INT(1))
    logits = net.train()(x)
    weight = torch.linspace(0.5, 1.5, logits.numel(), dtype=torch.float64).reshape(logits.shape)
    (logits * weight).sum().backward()
    y = mine.forward(x, True)
    k.backward(k.call("kn_sum", VOID(k.apply("mul", [y, k.from_torch(weight)[0]])[0])))
    gradients = mine.gradients()
    expected = {key: value.grad for key, value in net.named_parameters()}
    if list(gradients) != list(expected):
        raise Refused("parameters in another order: " + ", ".join(set(gradients) ^ set(expected)))
    scale = max(value.abs().max() for value in expected.values()).item()
    far = max((gradients[key] - expected[key]).abs().max().item() for key in expected) / scale
    k.lib.kn_module_free(mine.module)
    k.end()
    return worst, far


def main():
    parser = argparse.ArgumentParser(description="Networks, PyTorch against Koine.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--library", default=library_path())
    options = parser.parse_args()
    torch.set_num_threads(2)
    k = Library(options.library)
    k.lib.kn_module_train.restype = None
    k.lib.kn_module_free.restype = None
    wrong = 0
    for name in options.names or VISION:
        try:
            worst, far = compare(k, name)
            fine = worst < TOLERANCE and far < 1e-6
            print(f"{name:20} outputs {worst:.1e}, gradients {far:.1e}{'' if fine else '   differ'}", flush=True)
        except Refused as message:
            fine = False
            print(f"{name:20} {message}", flush=True)
        wrong += not fine
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
