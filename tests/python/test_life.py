"""Errors, ownership, threads, forks and the end of the interpreter."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import koine


def run(text, **options):
    return subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, timeout=120, **options)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('wrong, kind, words', [
    (lambda: koine.ones(2) + koine.ones(3), ValueError, 'do not broadcast'),
    (lambda: koine.ones(2, 3) @ koine.ones(2, 3), ValueError, 'matmul'),
    (lambda: koine.ones(3)[3], IndexError, 'out of range'),
    (lambda: koine.ones(3).sum(dim=2), IndexError, 'out of range'),
    (lambda: koine.ones(3)[1.5], TypeError, 'indexed with'),
    (lambda: koine.ones(3)[1, 2], IndexError, 'too many'),
    (lambda: koine.sin('x'), TypeError, 'sin: input must be a koine.Tensor, not str'),
    (lambda: koine.conv2d(koine.ones(1, 1, 3, 3), [1]), TypeError, 'weight must be a koine.Tensor, not list'),
    (lambda: koine.softmax(koine.ones(3), dim='a'), TypeError, 'softmax'),
    (lambda: koine.softmax(koine.ones(3, dtype='int64')), TypeError, 'int64'),
    (lambda: koine.nn_nothing, AttributeError, 'nn_nothing'),
    (lambda: koine.ones(3).nothing(), AttributeError, 'nothing'),
    (lambda: koine.gelu(koine.ones(3), approximate='maybe'), ValueError, "'none', 'tanh'"),
    (lambda: koine.tensor(['a']), TypeError, 'dtype'),
    (lambda: koine.dropout(koine.ones(3), p=2), ValueError, 'p'),
    (lambda: koine.linalg.inv([1]), TypeError, 'koine.Tensor'),
    (lambda: koine.ones(3).sin(1, 2), TypeError, 'argument'),
])
def test_errors(wrong, kind, words):
    with pytest.raises(kind, match=words):
        wrong()
    assert koine.ones(1).item() == 1


def test_an_index_found_by_a_kernel():
    x = koine.ones(3).index_select(0, koine.tensor([5]))
    with pytest.raises(IndexError, match='out of range'):
        x.tolist()


def test_errors_are_koines_own():
    for kind in (koine.KoineValueError, koine.KoineIndexError, koine.KoineTypeError, koine.KoineMemoryError,
                 koine.KoineIOError):
        assert issubclass(kind, koine.KoineError) and issubclass(kind, RuntimeError)


# --- ownership --------------------------------------------------------------------------------------------------------

def square():
    return koine.eye(5) * 2


@pytest.mark.parametrize('function', [
    lambda: koine.linalg.vecdot(square(), square()), lambda: koine.linalg.cross(koine.ones(3), koine.ones(3)),
    lambda: koine.linalg.inv(square()), lambda: koine.linalg.pinv(square()), lambda: koine.linalg.svd(square()),
    lambda: koine.linalg.lu(square()), lambda: koine.linalg.cond(square()),
    lambda: koine.linalg.lstsq(square(), square()),
    lambda: koine.linalg.matrix_norm(square(), 1), lambda: koine.linalg.cholesky(square(), upper=True),
    lambda: koine.cholesky_solve(square(), square()), lambda: koine.dist(square(), square()),
    lambda: koine.renorm(square(), 2, 0, 1.0), lambda: koine.trapezoid(square()), lambda: koine.rot90(square(), 2),
    lambda: koine.ones(3, dtype=koine.int64) @ koine.ones(3, dtype=koine.int64)])
def test_functions_of_several_steps_keep_no_memory(function):
    function()
    gc.collect()
    koine.synchronize()
    before = koine.memory_allocated()
    function()
    assert koine.memory_allocated() == before



def test_memory_is_counted():
    device = koine.current_device()
    before = koine.memory_allocated()
    x = koine.zeros(256, 256)
    assert koine.memory_allocated() == koine.memory_allocated(device) == before + x.nbytes
    assert koine.memory_reserved() >= koine.max_memory_allocated() >= koine.memory_allocated()
    koine.empty_cache()
    koine.synchronize(device)
    assert 'Allocated memory' in koine.memory_summary()


def test_no_leak():
    """1,000 steps leave no memory behind, neither of devices nor of the host."""
    x = koine.randn(16, 16, requires_grad=True)

    def steps(count):
        for _ in range(count):
            y = (x @ x.T).relu() * 2
            y[0] = 1.0
            (y.softmax(1).max(dim=1).values.sum() + y[[1, 2]].sum()).backward()
            x.grad = None
        koine.synchronize()
        gc.collect()
        return koine.memory_allocated(), resident()

    steps(100)
    device, host = steps(100)
    device_after, host_after = steps(1000)
    assert device_after == device
    assert host_after - host < 4 * 2**20


def resident():
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE')


def test_temporaries_live_long_enough():
    for _ in range(100):
        assert (7 // (koine.tensor([2, 3]) + 0)).tolist() == [3, 2]
        assert koine.cat([koine.ones(2) * i for i in range(3)]).tolist() == [0, 0, 1, 1, 2, 2]


def test_cycles_are_collected():
    koine.synchronize()
    gc.collect()
    before = koine.memory_allocated()
    for _ in range(10):
        holder = []
        holder.append((koine.zeros(1000), holder))
    del holder
    gc.collect()
    assert koine.memory_allocated() == before


# --- threads ----------------------------------------------------------------------------------------------------------


def test_threads():
    results, errors = {}, []

    def work(number):
        try:
            with koine.no_grad() if number % 2 else koine.enable_grad():
                total = 0
                for i in range(50):
                    x = koine.full((8,), float(number + i), requires_grad=number % 2 == 0)
                    y = (x * 2).sum()
                    assert y.requires_grad == (number % 2 == 0)
                    if y.requires_grad:
                        y.backward()
                        assert x.grad.tolist() == [2] * 8
                    total += y.item()
                    with pytest.raises(ValueError, match='broadcast'):
                        koine.ones(2) + koine.ones(3 + number)
                results[number] = total
        except BaseException as error:  # seen by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not errors
    assert results == {n: sum(16 * (n + i) for i in range(50)) for n in range(4)}


# --- the process ------------------------------------------------------------------------------------------------------


def test_interpreter_exit():
    """Objects that are alive at the end, in modules, threads and cycles, do no harm."""
    done = run('import koine, threading\n'
               'x = koine.ones(3, requires_grad=True); y = (x * 2).sum(); x.register_hook(lambda g: g)\n'
               'keep = [x]; keep.append(keep)\n'
               'threading.Thread(target=lambda: koine.ones(5).sin(), daemon=True).start()\n'
               'print(y.item())')
    assert (done.returncode, done.stdout, done.stderr) == (0, '6.0\n', '')


def test_fork():
    """A child is refused in words, and ends."""
    done = run('import os, koine\n'
               'x = koine.ones(3); x.tolist()\n'
               'child = os.fork()\n'
               'if child == 0:\n'
               '    try:\n'
               '        (x + 1).tolist()\n'
               '    except koine.KoineError as error:\n'
               '        print(error, flush=True)\n'
               '        os._exit(3)\n'
               'print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), x.tolist())')
    assert done.returncode == 0, done.stderr
    assert 'fork' in done.stdout and '3 [1.0, 1.0, 1.0]' in done.stdout


def test_control_c():
    """An endless loop of operations ends with KeyboardInterrupt."""
    process = subprocess.Popen([sys.executable, '-c', 'import koine\nx = koine.ones(3)\nprint("go", flush=True)\n'
                                'while True: x = (x * 1.0).sin(); x.tolist()'], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'go\n'
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and 'KeyboardInterrupt' in errors


def test_a_library_that_is_not_there():
    done = run('import koine', env={**os.environ, 'KOINE_LIBRARY': '/nowhere/libkoine.so'})
    assert done.returncode == 1 and 'KOINE_LIBRARY' in done.stderr


def test_declarations_match_the_headers(tmp_path):
    """_cdef.py is what the headers give: the struct layouts that Python uses are the library's."""
    lib, ffi = koine._c.lib, koine._c.ffi
    for i in range(lib.kn_op_count()):
        info = lib.kn_op_describe(lib.kn_op_at(i))
        assert info.params_size < 4096 and info.num_params < 32
    assert ffi.sizeof('kn_ints') == 72 and ffi.sizeof('kn_scalar') == 24
    assert koine.version() == koine.__version__


def test_tensors_made_of_arguments_belong_to_python():
    theta, size = koine.ones(1, 2, 3), koine.tensor([1, 1, 2, 2])
    wanted = koine.nn.functional.affine_grid(theta, (1, 1, 2, 2)).tolist()
    for _ in range(50):  # each reads the size through tensors of its elements, which die with the call
        assert koine.nn.functional.affine_grid(theta, size).tolist() == wanted
    with pytest.raises(ValueError, match='one element'):
        koine.nn.functional.affine_grid(theta, koine.ones(4, 4))
