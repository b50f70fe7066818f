"""Threads, processes, the end of the interpreter, Ctrl-C."""
import threading

import pytest
import torch

TRAIN = """
import torch
net = torch.nn.Linear(4, 4).koine()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    loss = net(torch.ones(2, 4).koine()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""


def test_ends_cleanly(run_python):
    assert run_python(TRAIN + "step(); keep = [step(), torch.ones(3).pin_memory(), torch.koine.Stream(), "
                              "torch.Generator('koine')]; print('end')") == 'end\n'


def test_ends_right_after_a_backward_pass(run_python):
    """Each of twenty children ends while PyTorch's thread may still hold objects of the interpreter."""
    program = """
import os, torch
from torch import nn
for _ in range(20):
    child = os.fork()
    if child == 0:
        break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        print('ended with', status)
if child == 0:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).koine()
    net(torch.randn(4, 3, 8, 8).koine()).sum().backward()
"""
    assert run_python(program, timeout=600) == ''


def test_interrupt(run_python):
    program = TRAIN + """
import os, signal, threading
step()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        step().item()
except KeyboardInterrupt:
    print('interrupted', step().item() >= 0)
"""
    assert run_python(program) == 'interrupted True\n'


def test_a_fork_that_uses_the_device_is_refused(run_python):
    program = TRAIN + """
import os
step()
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    told = [str(torch.koine._is_in_bad_fork()), str(torch.koine.is_available())]
    torch.manual_seed(3)
    try:
        torch.ones(2).koine()
    except RuntimeError as error:
        told.append(str(error))
    os.write(writing, '\\n'.join(told).encode())
    os._exit(0)
os.waitpid(child, 0)
print(os.read(reading, 10000).decode())
print(step().item() >= 0)
"""
    told = run_python(program).splitlines()
    assert told[:2] == ['True', 'False'] and 'fork' in told[2] and told[-1] == 'True'


def test_fork_before_the_first_use(run_python):
    program = """
import os, torch
child = os.fork()
x = torch.ones(2).koine() * 2
if child == 0:
    os._exit(int(x.sum().item()))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x.sum().item())
"""
    assert run_python(program) == '4 4.0\n'


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_data_loader(run_python, tmp_path, method):
    program = tmp_path / 'program.py'
    program.write_text("""
import torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == '__main__':
    x = torch.ones(1).koine()
    data = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20))
    loader = DataLoader(data, batch_size=4, num_workers=2, pin_memory=True, shuffle=True,
                        multiprocessing_context='%s', persistent_workers=True)
    total = 0.0
    for epoch in range(2):
        for inputs, targets in loader:
            assert inputs.is_pinned() and targets.is_pinned()
            total += inputs.to('koine', non_blocking=True).sum().item()
    print(total)
""" % method)
    assert run_python(str(program)) == '1560.0\n'


def test_two_threads():
    results = {}

    def work(name, factor):
        torch.koine.set_stream(torch.koine.Stream())
        x = torch.full((64, 64), float(factor)).koine()
        for _ in range(50):
            x = (x + x) * 0.5
        results[name] = x.sum().item()

    threads = [threading.Thread(target=work, args=(name, name + 1)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {0: 4096.0, 1: 8192.0}
    assert torch.koine.current_stream() == torch.koine.default_stream()


def test_memory_does_not_grow():
    net = torch.nn.Linear(8, 8).koine()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(4, 8).koine()
    sizes = []
    for step in range(300):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sizes.append(torch.koine.memory_allocated())
    del loss
    assert sizes[-1] == sizes[100]
