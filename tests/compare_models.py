#!/usr/bin/env python3
"""The networks of koine/models.h against PyTorch's: from the same file, the same outputs and gradients.

    python3 tests/compare_models.py                     # all of them
    python3 tests/compare_models.py resnet50 unet
    python3 tests/compare_models.py --write docs/models.md

Each network is made by torchvision, transformers or tests/compare/networks.py with random weights and running
estimates, and its state dict is written as safetensors. Koine loads it, strictly, and both compute the outputs in
evaluation mode, in float32, and the gradients of a loss in training mode: in float64, since batch norm of few values
amplifies rounding errors, or where the names are marked "f32" in float32. Differences are relative to the largest
value. It is run by hand; it needs torchvision, transformers, PyTorch and build/lib/libkoine.so."""

import argparse
import os
import sys
import warnings

import torch

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("compare", "support"):
    sys.path.insert(0, os.path.join(HERE, folder))
import networks  # noqa: E402
from koine_ctypes import Refused, library_path  # noqa: E402
from networks import CLASSES, VOCABULARY, Network, constructed, error, gradient_error, randomised  # noqa: E402
from operators import Library, VOID  # noqa: E402

OUTPUTS, GRADIENTS, GRADIENTS_F32 = 1e-4, 1e-6, 1e-4  # the largest differences allowed
BEGIN, END = "<!-- tests/compare_models.py -->\n", "<!-- end -->\n"


class Row:
    """A network, as both sides make it. `make` returns PyTorch's, `build` the address of Koine's, `inputs` those of
    PyTorch's forward; `state` is what is saved of it."""

    def __init__(self, name, make, build, inputs, of, wide=True, gradients=True, state=None, select=None, **load):
        self.name, self.make, self.build, self.inputs, self.of = name, make, build, inputs, of
        self.wide, self.gradients, self.load = wide, gradients, load
        self.state = state or (lambda net: net.state_dict())
        self.select = select or (lambda outputs: [outputs])


def image(size, batch=4, channels=3):
    return lambda: [torch.randn(batch, channels, size, size)]


def vision(name, size, wide=True, **values):
    given = {key: value for key, value in values.items() if key == "image_size"}
    return Row(name, lambda: networks.torchvision_net(name, **given),
               lambda k: networks.named(k, name, num_classes=CLASSES, dropout=0.0, stochastic_depth=0.0, **given),
               image(size), "torchvision", wide)


def tokens(batch, length, below=VOCABULARY):
    return lambda: [torch.randint(0, below, (batch, length))]


GPT = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": 48, "n_layer": 3, "n_head": 4}
BERT = {"vocab_size": VOCABULARY, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
        "intermediate_size": 96, "max_position_embeddings": 64}


def bert_inputs():
    mask = torch.ones(2, 37, dtype=torch.int64)
    mask[1, 20:] = 0
    return [torch.randint(0, VOCABULARY, (2, 37)), mask, torch.randint(0, 2, (2, 37))]


def lstm(name, layers, bidirectional):
    sizes = {"vocab_size": VOCABULARY, "embedding_dim": 20, "hidden_size": 24, "num_layers": layers,
             "bidirectional": bidirectional, "num_classes": CLASSES}
    return Row(name, lambda: networks.LSTMClassifier(VOCABULARY, 20, 24, layers, bidirectional),
               lambda k: constructed(k, networks.LstmClassifier.new(k, **sizes)),
               lambda: [torch.randint(0, VOCABULARY, (5, 17)), torch.tensor([17, 3, 9, 1, 12])],
               "tests/compare/networks.py")


def published_gpt2_state(net):
    """As in the file of the smallest network: without "transformer.", with masks that are not needed here."""
    state = dict(net.transformer.state_dict())
    for i in range(12):
        state[f"h.{i}.attn.bias"] = torch.tril(torch.ones(1024, 1024)).view(1, 1, 1024, 1024)
    return state


def published_resnet50():
    import torchvision
    return torchvision.models.resnet50()


ROWS = [
    Row("mlp", networks.mlp, networks.koine_mlp, image(4), "torch.nn.Sequential"),
    Row("lenet5", networks.LeNet5, lambda k: networks.named(k, "lenet5", num_classes=CLASSES), image(32),
        "tests/compare/networks.py"),
    vision("alexnet", 96),
    *[vision(name, 64) for name in ("vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
                                    "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d",
                                    "resnext101_32x8d", "wide_resnet50_2", "wide_resnet101_2", "mobilenet_v2",
                                    "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "densenet121",
                                    "densenet161", "densenet169", "densenet201", "convnext_tiny", "convnext_small",
                                    "convnext_base")],
    vision("convnext_large", 64, wide=False),
    vision("vit_b_16", 64, image_size=64),
    vision("vit_b_32", 64, image_size=64),
    vision("vit_l_16", 32, wide=False, image_size=32),
    vision("vit_l_32", 64, wide=False, image_size=64),
    Row("unet", networks.UNet, lambda k: networks.named(k, "unet", num_classes=CLASSES), image(32),
        "milesial/Pytorch-UNet"),
    lstm("lstm_classifier", 1, False),
    lstm("lstm_classifier, 2 layers, bidirectional", 2, True),
    Row("gpt2, 3 layers of 48", lambda: networks.gpt2(**GPT),
        lambda k: constructed(k, networks.Gpt2.new(k, dropout=0.0, **GPT)), tokens(2, 37), "transformers",
        state=lambda net: net.transformer.state_dict(), select=lambda outputs: [outputs.logits]),
    Row("bert, 3 layers of 48", lambda: networks.bert(**BERT),
        lambda k: constructed(k, networks.Bert.new(k, dropout=0.0, **BERT)), bert_inputs, "transformers",
        select=lambda outputs: [outputs[0], outputs[1]]),
    Row("resnet50 as published", published_resnet50, lambda k: networks.named(k, "resnet50"), image(224, batch=2),
        "torchvision", gradients=False),
    Row("gpt2 as published", lambda: networks.gpt2(), lambda k: constructed(k, networks.Gpt2.new(k)),
        tokens(1, 40, 50257), "transformers", gradients=False, state=published_gpt2_state,
        select=lambda outputs: [outputs.logits], strict=False),
]


def outputs_of(row, net, inputs):
    return row.select(net(*inputs))


def weights_like(value):
    return torch.linspace(0.5, 1.5, value.numel(), dtype=value.dtype).reshape(value.shape)


def compare_outputs(k, row, mine, net, inputs):
    mine.train(False)
    with torch.no_grad():
        expected = outputs_of(row, net.eval(), inputs)
    found = mine.forward(*inputs, num_outputs=len(expected))
    return max(error(k.to_torch(a), b) for a, b in zip(found, expected))


def compare_gradients(k, row, mine, net, inputs):
    """Of the first output's sum, weighted."""
    if row.wide:
        net, inputs = net.double(), [x.double() if x.is_floating_point() else x for x in inputs]
        mine.to_dtype(1)
    mine.train(True)
    expected = outputs_of(row, net.train(), inputs)
    weight = weights_like(expected[0].detach())
    (expected[0] * weight).sum().backward()
    found = mine.forward(*inputs, num_outputs=len(expected))
    k.backward(k.call("kn_sum", VOID(k.apply("mul", [found[0], k.from_torch(weight)[0]])[0])))
    reached = {key[len("transformer."):] if key.startswith("transformer.") else key: value.grad
               for key, value in net.named_parameters() if value.grad is not None}
    mine_found = {key: value for key, value in mine.gradients().items() if value is not None}
    worst, others = gradient_error(mine_found, reached)
    if others:
        raise Refused("gradients on one side only: " + ", ".join(others[:8]))
    return worst


def compare(k, row):
    """Parameters, the largest difference of outputs, and of gradients or None."""
    torch.manual_seed(0)
    k.begin()
    net, inputs = randomised(row.make()), row.inputs()
    mine = Network(k, row.build(k), row.state(net), **row.load)
    try:
        worst = compare_outputs(k, row, mine, net, inputs)
        far = compare_gradients(k, row, mine, net, inputs) if row.gradients else None
        return mine.count(), worst, far
    finally:
        mine.free()
        k.end()


def write_table(path, row, count, worst, far):
    """Replaces the network's row in the table between the two comments."""
    with open(path) as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    rows = {line.split("|")[1].strip(): line for line in text[begin:end].splitlines() if line.startswith("| ")}
    gradients = "–" if far is None else f"{far:.0e}{'' if row.wide else ' (f32)'}"
    rows[row.name] = f"| {row.name} | {count:,} | {row.of} | {worst:.0e} | {gradients} |"
    order = [other.name for other in ROWS if other.name in rows]
    head = "| network | parameters | original | outputs | gradients |\n| --- | --- | --- | --- | --- |\n"
    with open(path, "w") as file:
        file.write(text[:begin] + head + "".join(rows[name] + "\n" for name in order) + text[end:])


def main():
    parser = argparse.ArgumentParser(description="Networks, PyTorch against Koine.")
    parser.add_argument("names", nargs="*", help="those whose names start so; default: all")
    parser.add_argument("--library", default=library_path())
    parser.add_argument("--write", metavar="FILE", help="put the results into the table of this Markdown file")
    options = parser.parse_args()
    torch.set_num_threads(2)
    k, wrong = Library(options.library), 0
    for row in ROWS:
        if options.names and not row.name.startswith(tuple(options.names)):
            continue
        try:
            count, worst, far = compare(k, row)
            fine = worst < OUTPUTS and (far is None or far < (GRADIENTS if row.wide else GRADIENTS_F32))
            text = "" if far is None else f", gradients {far:.1e}"
            print(f"{row.name:42}{count:12} outputs {worst:.1e}{text}{'' if fine else '   differ'}", flush=True)
            if options.write:
                write_table(options.write, row, count, worst, far)
        except Refused as message:
            fine = False
            print(f"{row.name:42}{message}", flush=True)
        wrong += not fine
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
