#!/usr/bin/env python3
"""Training steps by PyTorch and by Koine, from the same weights on the same batches: the losses must be the same.

    python3 tests/compare_training.py                              # ten steps of each
    python3 tests/compare_training.py gpt/adamw --steps 200        # also shows the loss on held-out text
    python3 tests/compare_training.py --write docs/models.md

ResNet-18 for small images learns noisy patterns, a small GPT a text of Debian's byte by byte; each with SGD with
momentum and with AdamW. In float32 every loss must be PyTorch's within 1e-3, relative, and in float64 within 1e-8. In
mixed precision (autocast to bfloat16, or to float16 with a gradient scaler) Koine's losses must be within 2 % of its
own in float32. It is run by hand; it needs torchvision, transformers, PyTorch and build/lib/libkoine.so."""

import argparse
import ctypes
import os
import sys
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("compare", "support"):
    sys.path.insert(0, os.path.join(HERE, folder))
import networks  # noqa: E402
from koine_ctypes import BOOL, DOUBLE, INT, library_path  # noqa: E402
from networks import CLASSES, Gpt2, Network, Parameters, constructed, named  # noqa: E402
from operators import Library, VOID  # noqa: E402

WITHIN = {"f64": 1e-8, "f32": 1e-3, "bf16": 2e-2, "f16": 2e-2}
TEXT = "/usr/share/common-licenses/GPL-3"
BEGIN, END = "<!-- tests/compare_training.py -->\n", "<!-- end of training -->\n"
PRECISIONS = {"f64": 0, "f32": 0, "bf16": 4, "f16": 3}  # the kn_dtype of autocast


# --- problems: a network and its batches ------------------------------------------------------------------------------


class Resnet18:
    RATES = {"sgd": 0.002, "adamw": 1e-4}
    held_out = None

    def make(self):
        return networks.resnet18_for_cifar()

    def build(self, k):
        return named(k, "resnet18", num_classes=CLASSES, small_images=True)

    def state(self, net):
        return net.state_dict()

    def batch(self, step):
        generator = torch.Generator().manual_seed(100 + step)
        labels = torch.randint(0, CLASSES, (16,), generator=generator)
        patterns = torch.randn(CLASSES, 3, 32, 32, generator=torch.Generator().manual_seed(7))
        return patterns[labels] + torch.randn(16, 3, 32, 32, generator=generator), labels

    def logits(self, net, x):
        return net(x)


class Gpt:
    RATES = {"sgd": 0.05, "adamw": 1e-3}
    SIZES = {"vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 4, "n_head": 4}

    def __init__(self):
        with open(TEXT, "rb") as file:
            text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
        end = len(text) * 9 // 10
        self.text = text[:end]
        self.held_out = self.windows(text[end:], torch.arange(0, len(text) - end - 65, 65)[:32])

    @staticmethod
    def windows(text, starts):
        rows = torch.stack([text[i:i + 65] for i in starts])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def make(self):
        return networks.gpt2(**self.SIZES)

    def build(self, k):
        return constructed(k, Gpt2.new(k, dropout=0.0, **self.SIZES))

    def state(self, net):
        return net.transformer.state_dict()

    def batch(self, step):
        generator = torch.Generator().manual_seed(100 + step)
        return self.windows(self.text, torch.randint(0, len(self.text) - 65, (16,), generator=generator))

    def logits(self, net, x):
        return net(x).logits


PROBLEMS = {"resnet18": Resnet18, "gpt": Gpt}


# --- PyTorch ----------------------------------------------------------------------------------------------------------


class WithTorch:
    def __init__(self, problem, net, optimizer, rate):
        self.problem, self.net = problem, net.train()
        make = {"sgd": lambda p: torch.optim.SGD(p, lr=rate, momentum=0.9, weight_decay=5e-4),
                "adamw": lambda p: torch.optim.AdamW(p, lr=rate)}[optimizer]
        self.optimizer = make(self.net.parameters())

    def loss_of(self, x, y):
        logits = self.problem.logits(self.net, x)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss_of(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def evaluate(self, x, y):
        with torch.no_grad():
            return self.loss_of(x, y).item()

    def free(self):
        pass


# --- Koine ------------------------------------------------------------------------------------------------------------


class Sgd(Parameters):
    FUNCTION = "kn_sgd"
    _fields_ = [("lr", DOUBLE), ("momentum", DOUBLE), ("dampening", DOUBLE), ("weight_decay", DOUBLE),
                ("nesterov", BOOL), ("maximize", BOOL), ("master_weights", BOOL)]


class Adam(Parameters):
    FUNCTION = "kn_adamw"
    _fields_ = [("lr", DOUBLE), ("beta1", DOUBLE), ("beta2", DOUBLE), ("eps", DOUBLE), ("weight_decay", DOUBLE),
                ("amsgrad", BOOL), ("maximize", BOOL), ("master_weights", BOOL), ("decoupled_weight_decay", BOOL)]


class WithKoine:
    def __init__(self, k, problem, state, optimizer, rate, dtype, wide):
        self.k, self.dtype = k, dtype
        module = problem.build(k)
        if wide:  # before loading, which converts
            k.do("kn_module_to_dtype", VOID(module), INT(1))
        self.net = Network(k, module, state)
        params = Sgd.new(k, lr=rate, momentum=0.9, weight_decay=5e-4) if optimizer == "sgd" else Adam.new(k, lr=rate)
        self.optimizer = VOID(k.call(f"kn_optim_{optimizer}_with", self.net.parameters(), ctypes.byref(params)))
        self.scaler = VOID(k.call("kn_grad_scaler_new_with", None)) if dtype == PRECISIONS["f16"] else None
        k.lib.kn_optim_zero_grad.restype = k.lib.kn_optim_free.restype = k.lib.kn_grad_scaler_free.restype = None
        k.lib.kn_autocast_leave.restype = None

    def loss_of(self, x, y):
        before = self.k.lib.kn_autocast_enter(INT(self.dtype))
        logits = self.net.forward(x)[0]
        rows = self.k.apply("reshape", [logits], {"shape": (y.numel(), -1)})[0]
        loss = self.k.apply("cross_entropy", [rows, self.k.from_torch(y.reshape(-1))[0]])[0]
        self.k.lib.kn_autocast_leave(INT(before))
        return loss

    def step(self, x, y):
        k = self.k
        k.begin()
        k.lib.kn_optim_zero_grad(self.optimizer)
        loss = self.loss_of(x, y)
        if self.scaler:
            k.backward(k.call("kn_grad_scaler_scale", self.scaler, VOID(loss)))
            k.do("kn_grad_scaler_step", self.scaler, self.optimizer)
            k.do("kn_grad_scaler_update", self.scaler)
        else:
            k.backward(loss)
            k.do("kn_optim_step", self.optimizer)
        value = k.to_torch(loss).item()
        k.end()
        return value

    def evaluate(self, x, y):
        self.k.begin()
        value = self.k.to_torch(self.loss_of(x, y)).item()
        self.k.end()
        return value

    def free(self):
        if self.scaler:
            self.k.lib.kn_grad_scaler_free(self.scaler)
        self.k.lib.kn_optim_free(self.optimizer)
        self.net.free()


# --- comparing --------------------------------------------------------------------------------------------------------


class Losses:
    """Of all steps; and on held-out data before and after them, if there is such."""

    def __init__(self, side, problem, batches):
        before = [side.evaluate(*problem.held_out)] if problem.held_out else []
        self.steps = [side.step(*batch) for batch in batches]
        self.held_out = before + [side.evaluate(*problem.held_out)] if problem.held_out else None
        side.free()

    def show(self, label):
        text = " ".join(f"{value:.4f}" for value in self.steps[:10])
        print(f"    {label:8}{text}" + (f" ... {self.steps[-1]:.4f}" if len(self.steps) > 10 else ""))
        if self.held_out:
            print(f"    {label:8}held-out text: {self.held_out[0]:.4f} before, {self.held_out[1]:.4f} after")

    def apart(self, expected):
        return max(abs(a - b) / abs(b) for a, b in zip(self.steps, expected.steps))


def train(k, problem, optimizer, precision, steps):
    """The losses of Koine, and those of PyTorch, or in mixed precision None."""
    torch.manual_seed(0)
    net, rate = problem.make(), problem.RATES[optimizer]
    state = {key: value.clone() for key, value in problem.state(net).items()}
    wide = precision == "f64"
    batches = [[x.double() if wide and x.is_floating_point() else x for x in problem.batch(step)]
               for step in range(steps)]
    mine = Losses(WithKoine(k, problem, state, optimizer, rate, PRECISIONS[precision], wide), problem, batches)
    if PRECISIONS[precision]:
        return mine, None
    return mine, Losses(WithTorch(problem, net.double() if wide else net, optimizer, rate), problem, batches)


def compare(k, name, steps, precisions):
    """For each precision: name, precision, Koine's losses, PyTorch's or None, the largest difference, and whether it is
    small enough."""
    problem, optimizer, exact = PROBLEMS[name.split("/")[0]](), name.split("/")[1], None
    for precision in precisions:
        print(f"{name}, {precision}")
        mine, theirs = train(k, problem, optimizer, precision, steps)
        exact = mine if precision == "f32" else exact
        mine.show("Koine")
        if theirs:
            theirs.show("PyTorch")
        expected = theirs or exact
        far = mine.apart(expected) if expected else 0
        fine = far <= WITHIN[precision]
        print(f"    {'same' if fine else 'differ'}: {far:.1e}, allowed {WITHIN[precision]:.0e}", flush=True)
        yield name, precision, mine, theirs, far, fine


def write_table(path, row):
    """Replaces the row of this network, optimizer and precision in the table between the two comments."""
    name, precision, mine, theirs, far, _ = row
    with open(path) as file:
        text = file.read()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    lines = [line for line in text[begin:end].splitlines() if "/" in line]
    rows = {tuple(cell.strip() for cell in line.split("|")[1:3]): line for line in lines}
    last = f"{theirs.steps[-1]:.4f}" if theirs else "–"
    rows[name, precision] = (f"| {name} | {precision} | {mine.steps[0]:.4f} | {mine.steps[-1]:.4f} | {last} "
                             f"| {far:.0e} |")
    order = [(other, kind) for other in every() for kind in PRECISIONS if (other, kind) in rows]
    head = ("| network and optimizer | precision | first loss | last, Koine | last, PyTorch | largest difference |\n"
            "| --- | --- | --- | --- | --- | --- |\n")
    with open(path, "w") as file:
        file.write(text[:begin] + head + "".join(rows[key] + "\n" for key in order) + text[end:])


def every():
    return [f"{problem}/{optimizer}" for problem in PROBLEMS for optimizer in ("sgd", "adamw")]


def main():
    parser = argparse.ArgumentParser(description="Training steps, PyTorch against Koine.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(every()) + "; default: all")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--precisions", nargs="+", default=list(PRECISIONS), choices=list(PRECISIONS))
    parser.add_argument("--library", default=library_path())
    parser.add_argument("--write", metavar="FILE", help="put the results into the table of this Markdown file")
    options = parser.parse_args()
    for name in options.names:
        if name not in every():
            parser.error(f"there is no {name}; there are {', '.join(every())}")
    torch.set_num_threads(2)
    k, fine = Library(options.library), True
    for name in options.names or every():
        for row in compare(k, name, options.steps, options.precisions):
            fine = fine and row[-1]
            if options.write:
                write_table(options.write, row)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
