"""koine.compile, and the number of threads."""
import os
import subprocess
import sys

import pytest

import koine
from koine import nn


def test_compile():
    net = nn.Linear(2, 2)
    assert koine.compile(net) is net and koine.compile(net, mode='max-autotune', fullgraph=True) is net

    @koine.compile
    def twice(x):
        return 2 * x

    @koine.compile(dynamic=True)
    def thrice(x):
        return 3 * x

    assert twice(2) == 4 and thrice(koine.ones(1)).item() == 3
    with pytest.raises(TypeError, match='a module or a function is needed, not int'):
        koine.compile(3)


def has_pocl():
    try:
        return 'Portable' in koine.device('cpu').properties['platform']
    except koine.KoineError:
        return False


@pytest.mark.skipif(not has_pocl(), reason='needs PoCL')
@pytest.mark.parametrize('threads', [1, 2])
def test_threads(threads):
    """PoCL has so many, and no others are possible later."""
    program = '''
import os, koine
koine.set_num_threads(%d)
print(koine.get_num_threads(), koine.device('cpu').properties['multi_processor_count'], koine.ones(2).sum().item())
koine.set_num_threads(%d)
try:
    koine.set_num_threads(%d)
except RuntimeError as error:
    print(error)
print(os.environ['POCL_MAX_PTHREAD_COUNT'])
''' % (threads, threads, threads + 1)
    environment = {**os.environ, 'KOINE_DEVICE': 'cpu'}
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=120, env=environment)
    lines = done.stdout.splitlines()
    assert lines[0] == '%d %d 2.0' % (threads, threads), done.stderr
    assert lines[1].startswith('set_num_threads: the CPU device has %d threads, not %d' % (threads, threads + 1))
    assert lines[2] == str(threads)


def test_wrong_threads():
    before = os.environ.get('POCL_MAX_PTHREAD_COUNT')
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match='set_num_threads: a number of 1 or more'):
            koine.set_num_threads(wrong)
    assert os.environ.get('POCL_MAX_PTHREAD_COUNT') == before
