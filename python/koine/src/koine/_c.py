"""libkoine.so: opening it, its errors as exceptions, and arguments that many functions take."""
import functools
import os
import threading

from ._cdef import ffi

NULL = ffi.NULL


def _open():
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.environ.get('KOINE_LIBRARY') or os.path.join(here, 'lib', 'libkoine.so')
    try:
        return ffi.dlopen(path)
    except OSError as error:
        if 'libOpenCL' in str(error):
            raise ImportError('koine needs the OpenCL loader: install ocl-icd-libopencl1 (Debian, Ubuntu) or ocl-icd '
                              '(Fedora, Arch); without a GPU also pocl-opencl-icd') from error
        raise ImportError('koine cannot open its library, %s; KOINE_LIBRARY names another' % error) from error


lib = _open()

# --- errors -----------------------------------------------------------------------------------------------------------


class KoineError(RuntimeError):
    """An error of the library, with its sentence. The subclasses are also the exception that Python expects."""
    status = 0


class KoineValueError(KoineError, ValueError):
    """A value out of range, or shapes that do not fit."""


class KoineIndexError(KoineError, IndexError):
    """An index or a dimension out of range."""


class KoineTypeError(KoineError, TypeError):
    """A dtype that the operation does not support."""


class KoineMemoryError(KoineError, MemoryError):
    """Host or device memory is exhausted."""


OutOfMemoryError = KoineMemoryError  # PyTorch's name


class KoineIOError(KoineError, OSError):
    """The operating system refused to read or write."""


class KoineNumericError(KoineError, ArithmeticError):
    """NaN or infinity where training cannot continue."""


class KoineBatchedError(KoineError):
    """Inside vmap values are needed that differ between the samples."""


_CLASSES = {lib.KN_ERR_ARGUMENT: KoineValueError, lib.KN_ERR_SHAPE: KoineValueError, lib.KN_ERR_FORMAT: KoineValueError,
            lib.KN_ERR_DTYPE: KoineTypeError, lib.KN_ERR_MEMORY: KoineMemoryError, lib.KN_ERR_IO: KoineIOError,
            lib.KN_ERR_NUMERIC: KoineNumericError, lib.KN_ERR_BATCHED: KoineBatchedError}
_raised = threading.local()  # .exception: what a Python function raised that the library called


def error():
    """The thread's last error as an exception; what a Python function called by the library raised comes first."""
    status, message = lib.kn_error_status(), text(lib.kn_error_message())
    lib.kn_error_clear()
    exception = getattr(_raised, 'exception', None)
    if exception is not None:
        _raised.exception = None
        return exception
    if status == lib.KN_ERR_INTERRUPTED:
        return KeyboardInterrupt(message)
    kind = _CLASSES.get(status, KoineError)
    if kind is KoineValueError and 'out of range' in message:
        kind = KoineIndexError
    exception = kind(message)
    exception.status = status
    return exception


def check(status):
    """For functions that return a kn_status."""
    if status:
        raise error()


def checked(pointer):
    """For functions that return an object or NULL."""
    if not pointer:
        raise error()
    return pointer


def callback(kind, failure, function):
    """A C function of that type that calls `function`; its exceptions become the library's error, and later are raised
    again where the library was called. Tensors made inside belong to Python, whatever scopes are open; a tensor that
    it returns goes to the library's scope. If it returns a function, that is called outside of Python's ownership."""

    def called(*arguments):
        scopes = lib.kn_scope_suspend()
        try:
            result = function(*arguments)
        except BaseException as exception:  # KeyboardInterrupt, too
            _raised.exception = exception
            lib.kn_error_set(lib.KN_ERR_STATE, b'%s', ffi.new('char[]', _sentence(exception)))
            return failure
        finally:
            lib.kn_scope_resume(scopes)
        if isinstance(result, ffi.CData):
            return result
        return adopted(result) if hasattr(result, '_h') else result() if callable(result) else result

    return ffi.callback(kind, called)


def raise_pending():
    """Raises what a Python function raised that returns a number, which tells the library nothing."""
    if getattr(_raised, 'exception', None) is not None:
        raise error()


def adopted(tensor):
    """The handle of a tensor, with a reference that belongs to the innermost scope."""
    return lib.kn_scope_return(lib.kn_scope_begin(), tensor._h)


def run_in_scope(function, arguments, makes_tensors=False, further=()):
    """Calls a C function; what it leaves over is released. The tensors that it makes, its result and those at the
    pointers `further`, belong to the caller. The arguments are ready: tensors that Python made while a scope is open
    would belong to both."""
    scope = lib.kn_scope_begin()
    try:
        result = function(*arguments)
        if makes_tensors and result:
            for one in (result, *[one[0] for one in further]):
                lib.kn_retain(one)
        return result
    finally:
        lib.kn_scope_end(scope)


def _sentence(exception):
    return ('%s: %s' % (type(exception).__name__, exception)).encode('utf-8', 'replace').replace(b'\0', b' ')


# --- arguments --------------------------------------------------------------------------------------------------------


def text(pointer):
    """A C string as str; '' for NULL."""
    return ffi.string(pointer).decode('utf-8', 'replace') if pointer else ''


def owned_text(pointer):
    """A string that the caller frees."""
    checked(pointer)
    try:
        return text(pointer)
    finally:
        lib.kn_free(pointer)


def encoded(name):
    """A str for the library, which would end at a NUL."""
    return _whole(name.encode())


def path(name):
    return _whole(os.fsencode(name))


def _whole(name):
    if b'\0' in name:
        raise ValueError('%r has a NUL character' % name.decode(errors='replace'))
    return name


@functools.lru_cache(maxsize=1024, typed=True)
def _number(value):
    whole = not isinstance(value, float)
    return ffi.new('kn_scalar *', (whole, int(value) if whole else 0, float(value)))[0]


def scalar(value):
    """A kn_scalar: integers and bools stay whole."""
    if not isinstance(value, (int, float)):
        value = plain_number(value)
    elif value == 0:
        value = value + 0 if isinstance(value, int) else value
        return ffi.new('kn_scalar *', (not isinstance(value, float), 0, value))[0]  # 0.0 and -0.0 are equal keys
    return _number(value)


def plain_number(value):
    """A Python number for one of numpy's, or for a tensor of one element."""
    item = getattr(value, 'item', None)
    number = item() if item is not None else value
    if not isinstance(number, (int, float)):
        raise TypeError('expected a number, not %s' % type(value).__name__)
    return number


_known_sizes = {}
_MOST_SIZES = 1024


def sizes(shape):
    """(ndim, const int64_t *) of a shape."""
    try:
        return _known_sizes[shape]
    except (KeyError, TypeError):
        pass
    numbers = [int(size) for size in shape]
    made = len(numbers), ffi.new('int64_t[]', numbers)
    if type(shape) is tuple and {*map(type, shape)} <= {int}:
        if len(_known_sizes) == _MOST_SIZES:
            _known_sizes.clear()
        _known_sizes[shape] = made
    return made


def shape_of(arguments):
    """The shape of f(2, 3), f((2, 3)) and f([2, 3])."""
    if len(arguments) == 1 and not hasattr(arguments[0], '__index__'):
        return tuple(arguments[0])
    return arguments


def dims(dim):
    """(int *, count) of one dimension, several, or None for all."""
    if dim is None:
        return NULL, 0
    dim = [dim] if isinstance(dim, int) else list(dim)
    return ffi.new('int[]', dim), len(dim)


def version():
    return text(lib.kn_version())
