#!/usr/bin/env python3
"""Training on two ranks by PyTorch's DistributedDataParallel (gloo) and by Koine's (MPI), from the same weights on the
same batches: losses and parameters must be the same.

    python3 tests/compare_distributed.py                     # the seeds' CNN and ResNet-18, in float32 and float64
    python3 tests/compare_distributed.py --steps 5 --only cnn

It is run by hand; it needs PyTorch, torchvision, safetensors, mpirun and a build with MPI."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.dirname(os.path.abspath(__file__))
for folder_of_tests in ("compare", "support"):
    sys.path.insert(0, os.path.join(HERE, folder_of_tests))
import networks  # noqa: E402

RANKS = 2
# image, batch of a rank, learning rate
NETWORKS = {"cnn": ((1, 28, 28), 64, 0.05), "resnet18": ((3, 32, 32), 8, 0.0001)}
DTYPES = {"f32": torch.float32, "f64": torch.float64}
WITHIN = {"f32": 1e-4, "f64": 1e-10}


def make(name):
    """As tests/dist/group/mpi_train.c has it."""
    if name == "resnet18":
        net = networks.resnet18_for_cifar()
        net.fc = nn.Linear(512, 10)
        return net
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.MaxPool2d(2, 2), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2, 2),
                         nn.Dropout2d(0), nn.AdaptiveMaxPool2d((1, 1)), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(),
                         nn.Linear(32, 10))


def batches_of(rank, name, steps, side):
    """Noisy patterns, one for each class."""
    image, size, _ = NETWORKS[name]
    image = (image[0], side, side) if side else image
    patterns = torch.randn(10, *image, generator=torch.Generator().manual_seed(7))
    made = {}
    for step in range(steps):
        generator = torch.Generator().manual_seed(1000 * rank + step)
        labels = torch.randint(0, 10, (size,), generator=generator)
        made[f"x.{step}"] = patterns[labels] + torch.randn(size, *image, generator=generator)
        made[f"y.{step}"] = labels
    return made


def train_rank(rank, folder, name, steps, lr, dtype):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    net = make(name).to(DTYPES[dtype])
    if rank == 0:
        net.load_state_dict(load_file(f"{folder}/weights.safetensors"))
    net = DistributedDataParallel(net)
    batches = load_file(f"{folder}/batches_{rank}.safetensors")
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(batches[f"x.{step}"].to(DTYPES[dtype])), batches[f"y.{step}"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.save(losses, f"{folder}/losses_{rank}.pt")
    if rank == 0:
        torch.save(net.module.state_dict(), f"{folder}/expected.pt")
    dist.destroy_process_group()


def train_koine(folder, name, steps, lr, dtype, build):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1",
                       KOINE_MODULE_PATH=os.path.join(build, "lib"))
    command = ["mpirun", "-n", str(RANKS), os.path.join(build, "tests/bin/mpi_train"), folder, name,
               str(steps), str(lr)]
    done = subprocess.run(command + [dtype], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return sorted((int(step), float(loss)) for step, loss in re.findall(r"loss (\d+) (\S+)", done.stdout))


def furthest(a, b):
    return max((a[key].double() - b[key].double()).abs().max().item() for key in a if a[key].is_floating_point())


def compare(name, dtype, steps, build, lr=None, side=None):
    lr = lr or NETWORKS[name][2]
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        net = make(name).to(DTYPES[dtype])
        before = {key: value.clone() for key, value in net.state_dict().items()}
        save_file(before, f"{folder}/weights.safetensors")
        for rank in range(RANKS):
            save_file(batches_of(rank, name, steps, side), f"{folder}/batches_{rank}.safetensors")
        mp.spawn(train_rank, (folder, name, steps, lr, dtype), RANKS)
        losses = train_koine(folder, name, steps, lr, dtype, build)
        expected = sorted((step, loss) for rank in range(RANKS)
                          for step, loss in enumerate(torch.load(f"{folder}/losses_{rank}.pt")))
        state = torch.load(f"{folder}/expected.pt")
        off = furthest(state, load_file(f"{folder}/result.safetensors"))
        loss_off = max(abs(a - b) / max(abs(b), 1) for (_, a), (_, b) in zip(losses, expected))
    holds = len(losses) == len(expected) and max(off, loss_off) < WITHIN[dtype]
    print(f"{name:10} {dtype}  {steps} steps on {RANKS} ranks: loss {expected[0][1]:.4f} -> {expected[-1][1]:.4f}, "
          f"losses differ by {loss_off:.1e}, parameters and buffers by {off:.1e} (they moved by "
          f"{furthest(before, state):.1e})  {'ok' if holds else 'FAILED'}", flush=True)
    return holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=NETWORKS, help="one network")
    parser.add_argument("--dtype", choices=DTYPES, help="one precision")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--lr", type=float, help="another learning rate")
    parser.add_argument("--side", type=int, help="images of another size")
    parser.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    args = parser.parse_args()
    results = [compare(name, dtype, args.steps, args.build, args.lr, args.side)
               for name in ([args.only] if args.only else NETWORKS)
               for dtype in ([args.dtype] if args.dtype else DTYPES)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
