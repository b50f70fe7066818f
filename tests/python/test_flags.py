"""koine.compile, and the number of threads."""
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


def test_threads():
    """The same bits with any number."""
    before = koine.get_num_threads()
    assert before >= 1
    x = koine.randn(200, 300)
    sums = []
    for threads in (1, 2, 3):
        koine.set_num_threads(threads)
        assert koine.get_num_threads() == threads
        sums.append((x @ x.t()).exp().sum().item())
    koine.set_num_threads(before)
    assert sums[0] == sums[1] == sums[2]


def test_wrong_threads():
    before = koine.get_num_threads()
    for wrong in (0, -1, True, 2.0):
        with pytest.raises(ValueError, match='set_num_threads: a number of 1 or more'):
            koine.set_num_threads(wrong)
    assert koine.get_num_threads() == before
