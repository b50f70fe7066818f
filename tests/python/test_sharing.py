"""DLPack, and the stubs."""
import ast
import gc
import os

import numpy
import pytest

import koine


@pytest.mark.parametrize('dtype', ['float64', 'float32', 'float16', 'int64', 'int32', 'int16', 'int8', 'uint8', 'bool'])
def test_to_numpy(dtype):
    x = (koine.rand(2, 3) * 4).to(dtype=dtype)
    array = numpy.from_dlpack(x)
    assert array.dtype == numpy.dtype(dtype)
    numpy.testing.assert_array_equal(array, x.numpy())
    numpy.testing.assert_array_equal(numpy.from_dlpack(x.T), x.numpy().T)


def test_host_memory_is_shared():
    host = koine.zeros(2, 3, device='host')
    array = numpy.from_dlpack(host)
    host.numpy()[0, 1] = 5
    assert array[0, 1] == 5
    del host
    gc.collect()
    assert array.sum() == 5
    del array
    gc.collect()
    assert not koine._dlpack._exported
    capsule = koine.ones(3).__dlpack__()
    assert len(koine._dlpack._exported) == 1
    del capsule
    assert not koine._dlpack._exported


def test_refusals():
    x = koine.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match='cannot be shared'):
        x.__dlpack__(copy=False)
    with pytest.raises(BufferError, match='requires a gradient'):
        koine.ones(2, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match='host only'):
        x.__dlpack__(dl_device=(4, 0))
    with pytest.raises(TypeError, match='bits'):
        koine.from_dlpack(numpy.zeros(2, numpy.uint64))


def test_from_others():
    array = numpy.arange(24.0).reshape(2, 3, 4)
    for view in (array, array.T, array[:, 1:, ::2], array[:, ::-1], array[0, 0, 0:0], numpy.array(3)):
        x = koine.from_dlpack(view)
        assert x.dtype.numpy == view.dtype
        numpy.testing.assert_array_equal(x.numpy(), view)
    assert koine.from_dlpack(koine.ones(2)).tolist() == [1, 1]


def stub_names(tree):
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            yield from (one.asname or one.name for one in node.names)
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets)
        else:
            yield node.target.id if isinstance(node, ast.AnnAssign) else node.name


def test_stubs_name_all_of_the_package():
    for module in koine, koine.nn:
        path = os.path.join(os.path.dirname(module.__file__), '__init__.pyi')
        with open(path, encoding='utf-8') as file:
            named = set(stub_names(ast.parse(file.read())))
        assert sorted(name for name in dir(module) if name[0] != '_' and name not in named) in ([], ['CLASSES'])


def test_stubs():
    """They parse, and name every operator, layer and optimizer."""
    folder = os.path.dirname(koine.__file__)
    trees = {}
    for name in ('__init__', 'nn/__init__', 'nn/functional', 'optim/__init__', 'optim/lr_scheduler'):
        with open(os.path.join(folder, name + '.pyi'), encoding='utf-8') as file:
            trees[name] = {node.name: node for node in ast.parse(file.read()).body if hasattr(node, 'name')}
    listed = {name for name in koine._ops.names() if not koine._functions.is_internal(name)}
    assert not listed - set(trees['__init__'])
    layers = trees['nn/__init__']
    assert set(koine.nn._layers.CLASSES) - set(koine.nn.containers.CLASSES) <= set(layers)
    assert [one.name for one in layers['AdaptiveLogSoftmaxWithLoss'].body] == [
        '__init__', 'forward', 'log_prob', 'predict', 'reset_parameters']
    assert set(koine.optim.SIGNATURES) <= set(trees['optim/__init__'])
    softmax = ast.unparse(trees['nn/functional']['conv2d'].args)
    assert softmax.startswith('input: Tensor, weight: Tensor, bias: Tensor | None=..., stride: int | Sequence[int]')
    methods = {node.name for node in trees['__init__']['Tensor'].body if hasattr(node, 'name')}
    assert {'sin', 'sin_', 'sum', 'softmax', 'max', 'reshape', 'backward', '__add__'} <= methods
    assert os.path.exists(os.path.join(folder, 'py.typed'))
