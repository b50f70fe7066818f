#!/usr/bin/env python3
"""The networks of koine/models.h against PyTorch's: from the same file, the same outputs and gradients.

    python3 tests/compare_models.py                     # all of them
    python3 tests/compare_models.py resnet50 unet

Each network is made by torchvision or transformers with random weights and running estimates, and its state dict is
written as safetensors. Koine loads it, strictly, and both compute logits in evaluation mode, in float32, and the
gradients of a loss in training mode, in float64 (language models in float32). It is run by hand; it needs torchvision, transformers, PyTorch and build/lib/libkoine.so."""

import argparse
import ctypes
import os
import sys
import tempfile
import warnings

import torch

warnings.simplefilter("ignore")
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


class Gpt2Params(ctypes.Structure):
    _fields_ = [("vocab_size", I64T), ("n_positions", I64T), ("n_embd", I64T), ("n_layer", I64T), ("n_head", I64T),
                ("dropout", DOUBLE)]


class BertParams(ctypes.Structure):
    _fields_ = [("vocab_size", I64T), ("hidden_size", I64T), ("num_hidden_layers", I64T), ("num_attention_heads", I64T),
                ("intermediate_size", I64T), ("max_position_embeddings", I64T), ("type_vocab_size", I64T),
                ("dropout", DOUBLE)]


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(vocab_size=301, n_positions=64, n_embd=48, n_layer=3, n_head=4, resid_pdrop=0,
                                      embd_pdrop=0, attn_pdrop=0))


def bert():
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(vocab_size=301, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                                intermediate_size=96, max_position_embeddings=64, hidden_dropout_prob=0,
                                attention_probs_dropout_prob=0))


def randomised(net):
    """Estimates and biases other than 0 and 1, so that a swap shows."""
    generator = torch.Generator().manual_seed(1)
    for name, value in net.state_dict().items():
        if name.endswith("running_mean") or name.endswith("bias"):
            value.copy_(0.1 * torch.randn(value.shape, generator=generator))
        if name.endswith("running_var"):
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
    return net


class LoadParams(ctypes.Structure):
    _fields_ = [("strict", BOOL), ("prefix", ctypes.c_char_p), ("keys", VOID)]


class Network:
    """A module of Koine with the weights of a network of PyTorch's, through a file."""

    def __init__(self, k, module, net, prefix=None):
        self.k, self.module = k, VOID(module)
        k.lib.kn_module_parameters.restype = ParameterList
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            state = {key: value.contiguous().clone() for key, value in net.state_dict().items()}
            save_safetensors(path, state, {"format": "pt"})
            k.do("kn_module_load_with", self.module, path.encode(), ctypes.byref(LoadParams(True, prefix, None)))

    def forward(self, x, training):
        return self.forward_many([x], 1, training)[0]

    def forward_many(self, inputs, num_outputs, training):
        outputs, given = (VOID * num_outputs)(), [self.k.from_torch(x)[0] for x in inputs]
        self.k.lib.kn_module_train(self.module, BOOL(training))
        self.k.do("kn_forward_many", self.module, (VOID * len(given))(*given), len(given), outputs, num_outputs)
        return list(outputs)

    def gradients(self):
        found = self.k.lib.kn_module_parameters(self.module)
        return {found.names[i].decode(): self.k.gradient_of(found.tensors[i]) for i in range(found.count)}


def error(a, b):
    """The largest difference, relative to the largest value."""
    return ((a - b).abs().max() / b.abs().max().clamp(min=1e-6)).item()


def compare_vision(k, name):
    torch.manual_seed(0)
    net = randomised(vision(name))
    for module in net.modules():
        if "Dropout" in type(module).__name__ or "StochasticDepth" in type(module).__name__:
            module.p = 0.0
    x = torch.randn(4, 3, VISION[name], VISION[name])
    params = ModelsParams(11, 3, 0.0, 0.0, False)  # no dropout: masks differ
    mine = Network(k, k.call("kn_models_new_with", name.encode(), ctypes.byref(params)), net)
    with torch.no_grad():
        worst = error(k.to_torch(mine.forward(x, False)), net.eval()(x))
    net, x = net.double(), x.double()  # batch norm of few values amplifies rounding errors
    k.do("kn_module_to_dtype", mine.module, INT(1))
    logits = net.train()(x)
    weight = torch.linspace(0.5, 1.5, logits.numel(), dtype=torch.float64).reshape(logits.shape)
    (logits * weight).sum().backward()
    k.backward(k.call("kn_sum", VOID(k.apply("mul", [mine.forward(x, True), k.from_torch(weight)[0]])[0])))
    far = gradient_error(mine.gradients(), {key: value.grad for key, value in net.named_parameters()})
    k.lib.kn_module_free(mine.module)
    return worst, far


def gradient_error(gradients, expected):
    if set(gradients) != set(expected):
        raise Refused("other parameters: " + ", ".join(sorted(set(gradients) ^ set(expected))))
    scale = max(value.abs().max() for value in expected.values()).item()
    return max((gradients[key] - expected[key]).abs().max().item() for key in expected) / scale


def compare_gpt2(k, name):
    torch.manual_seed(0)
    net, tokens = randomised(gpt2()), torch.randint(0, 301, (2, 37))
    mine = Network(k, k.call("kn_models_gpt2_with", ctypes.byref(Gpt2Params(301, 64, 48, 3, 4, 0.0))), net.transformer)
    logits = net(tokens).logits
    (logits * torch.linspace(0.5, 1.5, 301)).sum().backward()
    y = mine.forward(tokens, True)
    k.backward(k.call("kn_sum", VOID(k.apply("mul", [y, k.from_torch(torch.linspace(0.5, 1.5, 301))[0]])[0])))
    far = gradient_error(mine.gradients(), {key: value.grad for key, value in net.transformer.named_parameters()})
    return error(k.to_torch(y), logits.detach()), far * 1e-2  # in float32


def compare_bert(k, name):
    torch.manual_seed(0)
    net, tokens, types = randomised(bert()), torch.randint(0, 301, (2, 37)), torch.randint(0, 2, (2, 37))
    mask = torch.ones(2, 37, dtype=torch.int64)
    mask[1, 20:] = 0
    params = BertParams(301, 48, 3, 4, 96, 64, 2, 0.0)
    mine = Network(k, k.call("kn_models_bert_with", ctypes.byref(params)), net)
    expected = net(tokens, mask, types)
    states, pooled = [k.to_torch(y) for y in mine.forward_many([tokens, mask, types], 2, True)]
    return max(error(states[mask == 1], expected[0].detach()[mask == 1]), error(pooled, expected[1].detach())), 0


LANGUAGE = {"gpt2": compare_gpt2, "bert": compare_bert}


def compare(k, name):
    k.begin()
    found = LANGUAGE[name](k, name) if name in LANGUAGE else compare_vision(k, name)
    k.end()
    return found


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
    for name in options.names or list(VISION) + list(LANGUAGE):
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
