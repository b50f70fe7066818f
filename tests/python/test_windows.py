"""Windows, and functions that create tensors in further ways. The numbers are PyTorch's."""
import array

import numpy
import pytest

import koine


def close(ours, theirs):
    numpy.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6, atol=1e-7)


# name: (5 elements, periodic; 4 elements, symmetric)
WINDOWS = {
    'hann': ([0, 0.3454915, 0.9045085, 0.9045085, 0.3454915], [0, 0.75, 0.75, 0]),
    'blackman': ([0, 0.2007701, 0.8492299, 0.8492299, 0.2007701], [0, 0.63, 0.63, 0]),
    'bartlett': ([0, 0.4, 0.8, 0.8, 0.4], [0, 0.6666667, 0.6666667, 0]),
    'hamming': ([0.08, 0.3978522, 0.9121478, 0.9121478, 0.3978522], [0.08, 0.77, 0.77, 0.08]),
    'kaiser': ([5.277344e-05, 0.1017197, 0.7929398, 0.7929398, 0.1017197],
               [5.277344e-05, 0.5188447, 0.5188447, 5.277344e-05]),
}


@pytest.mark.parametrize('name', WINDOWS)
def test_windows(name):
    window = getattr(koine, name + '_window')
    periodic, symmetric = WINDOWS[name]
    close(window(5), periodic)
    close(window(4, False, dtype=koine.float64), symmetric)
    assert window(5).dtype is koine.float32 and window(5, dtype='bfloat16').dtype is koine.bfloat16
    assert window(3, requires_grad=True).requires_grad and window(3, device='cpu').device.type == 'cpu'
    assert window(0).shape == (0,) and window(1).tolist() == [1] == window(1, periodic=False).tolist()
    with pytest.raises(ValueError, match='%s_window: window_length must be at least 0, not -1' % name):
        window(-1)
    with pytest.raises(TypeError, match='dtype must be floating, not int64'):
        window(3, dtype=koine.int64)
    with pytest.raises(TypeError, match='takes window_length, periodic'):
        window(3, True, 1.0, 2.0, 3.0)


def test_windows_with_settings():
    close(koine.kaiser_window(4, True, 5.0), [0.03671089, 0.5528518, 1, 0.5528518])
    close(koine.kaiser_window(4, beta=5), koine.kaiser_window(4, True, 5.0).numpy())
    close(koine.hamming_window(4, True, 0.6, 0.3), [0.3, 0.6, 0.9, 0.6])
    close(koine.hamming_window(4, beta=0.3, alpha=0.6), [0.3, 0.6, 0.9, 0.6])


def test_range_has_its_end():
    assert koine.range(1, 4).tolist() == [1, 2, 3, 4] and koine.range(1, 4).dtype is koine.float32
    close(koine.range(1, 2.6, 0.5), [1, 1.5, 2, 2.5])
    assert koine.range(3, -1, -2).tolist() == [3, 1, -1] and koine.range(2, 2, dtype='int64').tolist() == [2]
    with pytest.raises(ValueError, match='range: 0 is not reached from 1 in steps of 1'):
        koine.range(1, 0)
    with pytest.raises(TypeError, match='both start and end are needed'):
        koine.range(4)


def test_fill():
    x = koine.ones(2, 2, dtype=koine.int32)
    assert koine.fill(x, 3).tolist() == [[3, 3]] * 2 and koine.fill(x, 3).dtype is koine.int32 and x.sum().item() == 4
    value = koine.tensor(2.0, requires_grad=True)
    koine.fill(koine.ones(3), value).sum().backward()
    assert value.grad.item() == 3


def test_strides():
    x = koine.empty_strided((2, 3), (1, 2), dtype='int32')
    assert x.shape == (2, 3) and x.stride() == (1, 2) and x.dtype is koine.int32 and not x.requires_grad
    x.copy_(koine.arange(6).reshape(2, 3))
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.new_empty_strided((2, 2), (4, 1)).dtype is koine.int32
    assert koine.empty_strided((0, 3), (3, 1), requires_grad=True).requires_grad
    with pytest.raises(ValueError, match='a stride of 0 or more is needed for each of 2 sizes'):
        koine.empty_strided((2, 3), (1,))


def test_buffers():
    assert koine.frombuffer(b'\0\1\2\3', dtype=koine.int16).tolist() == [256, 770]
    assert koine.frombuffer(array.array('f', [1, 2, 3, 4]), dtype='float32', count=2, offset=4).tolist() == [2, 3]
    assert koine.frombuffer(b'\x80\x3f\x00\x40', dtype=koine.bfloat16).float().tolist() == [1, 2]
    assert koine.frombuffer(bytes(8), dtype=koine.float32, requires_grad=True).requires_grad
    for arguments, words in (({'dtype': 'int64'}, '3 bytes of the buffer are not whole numbers of int64'),
                             ({'dtype': 'uint8', 'count': 5}, '3 bytes of the buffer are not 5 numbers of uint8'),
                             ({'dtype': 'uint8', 'offset': 3}, 'offset is 3; the buffer has 3 bytes')):
        with pytest.raises(ValueError, match=words):
            koine.frombuffer(b'abc', **arguments)
