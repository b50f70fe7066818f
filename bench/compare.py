#!/usr/bin/env python3
"""Runs Koine's benchmarks and a peer's alternately, in one run, and prints both times and their ratio.

    python3 bench/compare.py [--peer torch] [--only PREFIX] [--json] [--device D] [--repetitions N] [--koine-bench PATH]

Koine's side is `koine-bench --serve`, a process that waits for requests; the peer's side runs here. Both use as many threads as there are cores. Each
benchmark is set up on both sides and run without counting (first calls build kernels); then the two take N turns each, a turn being a burst of runs; the
medians of the time per run are compared.
PyTorch: Debian's packages python3-torch and libopenblas0-pthread (without the latter its matrix products run on the reference BLAS), or any newer torch of the
interpreter that runs this script.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

CONV = re.compile(r"conv/(\d+),(\d+),(\d+),(\d+)-(\d+),(\d+)x\d+(?:s(\d+))?/(fwd|bwd_data|bwd_weights)")
NORM = re.compile(r"norm/(batch|layer)/([\d,]+)/(fwd|bwd|copy)")
GEMM = re.compile(r"gemm/(\d+)x(\d+)x(\d+)(/f64)?$")


# OpenMP's threads spin for a while after each of the peer's calls; without a rest they would take the cores from Koine's next turn. A turn is a burst of
# runs, so that neither side is measured while its threads wake up.
REST = 0.05
BURST = 0.25


class Koine:
    """koine-bench as a server: one line in, one line out."""

    def __init__(self, path, device):
        command = [path, "--serve"] + (["--device", device] if device else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.path = path

    def names(self):
        return subprocess.run([self.path, "--list"], capture_output=True, text=True, check=True).stdout.split()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"koine-bench: {line}: {answer or 'no answer'}")
        return float(answer)


class Torch:
    """The same work in PyTorch, eager, on its CPU back end."""

    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(os.cpu_count())
        torch.manual_seed(0)
        self.version = torch.__version__

    def setup(self, name):
        """Returns a function that does one repetition, or None for a benchmark this peer has not."""
        torch = self.torch
        if name == "matmul":
            a, b = torch.rand(10000, 200), torch.rand(200, 10000)
            return lambda: a @ b
        if name == "linear_regression":
            return self.linear_regression()
        if name == "cnn_step":
            step = self.cnn()
            x, y = torch.rand(128, 1, 28, 28), torch.randint(0, 10, (128,))
            return lambda: step(x, y)
        if name == "mnist_epoch":
            return self.epoch()
        match = GEMM.match(name)
        if match:
            m, n, k = (int(match.group(i)) for i in (1, 2, 3))
            dtype = torch.float64 if match.group(4) else torch.float32
            a, b = torch.rand(m, k, dtype=dtype), torch.rand(k, n, dtype=dtype)
            return lambda: a @ b
        match = NORM.match(name)
        if match:
            return self.normalization(match)
        match = CONV.match(name)
        return self.convolution(match) if match else None

    def normalization(self, match):
        torch = self.torch
        shape = [int(size) for size in match.group(2).split(",")]
        x, weight, bias = torch.randn(shape, requires_grad=True), torch.ones(shape[1], requires_grad=True), torch.zeros(shape[1], requires_grad=True)
        mean, var = torch.zeros(shape[1]), torch.ones(shape[1])
        if match.group(1) == "batch":
            forward = lambda: torch.nn.functional.batch_norm(x, mean, var, weight, bias, training=True)
        else:
            forward = lambda: torch.nn.functional.layer_norm(x, (shape[1],), weight, bias)
        if match.group(3) == "fwd":
            return forward
        y = forward()
        gradient = torch.randn(shape)
        if match.group(3) == "copy":
            return lambda: gradient.copy_(x.detach())
        return lambda: torch.autograd.grad(y, (x, weight, bias), gradient, retain_graph=True)

    def linear_regression(self):
        torch = self.torch
        n = 1000000
        x, y = torch.rand(n, 2), torch.rand(n, 1)
        w, b = torch.randn(1, 2, requires_grad=True), torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.Adam([w, b], lr=0.1)

        def step():
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(x @ w.t() + b, y).backward()
            optimizer.step()

        return step

    def cnn(self):
        torch, nn = self.torch, self.torch.nn
        net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2, 2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2, 2), nn.Dropout2d(0.1),
                            nn.AdaptiveMaxPool2d((1, 1)), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)

        def step(x, y):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()

        return step

    def epoch(self):
        """The images are decoded before: the peer's loader shuffles and collates tensors, with two workers as Koine's."""
        import gzip

        torch = self.torch
        folder = "/usr/share/datasets/fashion-mnist"
        with gzip.open(f"{folder}/train-images-idx3-ubyte.gz") as file:
            raw = bytearray(file.read())
        images = torch.frombuffer(raw, dtype=torch.uint8)[16:].view(-1, 1, 28, 28)
        with gzip.open(f"{folder}/train-labels-idx1-ubyte.gz") as file:
            labels = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)[8:].long()

        class Images(torch.utils.data.Dataset):
            def __len__(self):
                return len(images)

            def __getitem__(self, index):
                return images[index].float() / 255, labels[index]

        loader = torch.utils.data.DataLoader(Images(), batch_size=128, shuffle=True, num_workers=2)
        step = self.cnn()

        def run():
            for x, y in loader:
                step(x, y)

        return run

    def convolution(self, match):
        torch = self.torch
        n, c, h, w, k, r = (int(match.group(i)) for i in range(1, 7))
        stride, part = int(match.group(7) or 1), match.group(8)
        padding = {3: 1, 5: 2, 7: 3, 1: 0}[r] if n != 128 else 0
        x, weight = torch.randn(n, c, h, w), torch.randn(k, c, r, r)
        x.requires_grad_(part == "bwd_data")
        weight.requires_grad_(part == "bwd_weights")
        forward = lambda: torch.nn.functional.conv2d(x, weight, stride=stride, padding=padding)
        if part == "fwd":
            return forward
        y = forward()
        gradient = torch.ones_like(y)
        wanted = x if part == "bwd_data" else weight
        return lambda: torch.autograd.grad(y, wanted, gradient, retain_graph=True)


def burst_length(seconds):
    """How many runs make a burst: about BURST seconds of them, at least one."""
    return max(1, min(200, int(BURST / max(seconds, 1e-6))))


def compare(koine, peer, name, repetitions):
    run = peer.setup(name)
    if run is None:
        return None

    def run_peer(count):
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) / count

    koine.ask("setup " + name)
    koine.ask("run 2")  # first calls build kernels
    run_peer(2)
    ours_count, theirs_count = burst_length(koine.ask("run 2")), burst_length(run_peer(2))
    ours, theirs = [], []
    for _ in range(repetitions):
        time.sleep(REST)
        ours.append(koine.ask(f"run {ours_count}"))
        time.sleep(REST)
        theirs.append(run_peer(theirs_count))
    koine.ask("teardown")
    a, b = statistics.median(ours), statistics.median(theirs)
    return {"name": name, "shape": name.split("/")[1] if "/" in name else "", "koine_s": a, "peer_s": b, "ratio": a / b,
            "koine_min_s": min(ours), "peer_min_s": min(theirs), "repetitions": repetitions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="torch", choices=["torch"])
    parser.add_argument("--only", default="", help="benchmarks whose name starts so")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--device", help="Koine's device; default auto")
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--koine-bench", default=os.path.join(os.path.dirname(__file__), "..", "build", "bin", "koine-bench"))
    arguments = parser.parse_args()
    try:
        koine, peer = Koine(arguments.koine_bench, arguments.device), Torch()
    except FileNotFoundError:
        sys.exit(f"compare.py: {arguments.koine_bench} is not there: build first (sh tests/run.sh)")
    except ImportError:
        sys.exit("compare.py: this Python has no torch: apt-get install python3-torch, then run it with /usr/bin/python3")
    if not arguments.json:
        print(f"koine against torch {peer.version}, {os.cpu_count()} threads each, medians of {arguments.repetitions}")
    for name in koine.names():
        if not name.startswith(arguments.only):
            continue
        slow = name in ("mnist_epoch",)
        row = compare(koine, peer, name, 3 if slow else arguments.repetitions)
        if row is None:
            continue
        if arguments.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{name:40s} koine {row['koine_s'] * 1e3:10.3f} ms   torch {row['peer_s'] * 1e3:10.3f} ms   ratio {row['ratio']:.2f}", flush=True)


if __name__ == "__main__":
    main()
