"""Settings of the whole process: determinism, the precision of products, threads, the default dtype, how tensors are
printed."""
from ._c import check, encoded, ffi, lib, text
from ._device import device
from ._dtypes import as_dtype, float32


def use_deterministic_algorithms(mode, *, warn_only=False):
    """What has only algorithms whose results may differ in the last bits is an error, or a warning."""
    check(lib.kn_use_deterministic_algorithms(
        lib.KN_DETERMINISTIC_OFF if not mode else lib.KN_DETERMINISTIC_WARN if warn_only else
        lib.KN_DETERMINISTIC_ERROR))


def are_deterministic_algorithms_enabled():
    return bool(lib.kn_are_deterministic_algorithms_enabled())


def is_deterministic_algorithms_warn_only_enabled():
    return bool(lib.kn_is_deterministic_algorithms_warn_only_enabled())


def set_float32_matmul_precision(precision):
    """'highest', 'high' or 'medium': the last two allow TF32."""
    check(lib.kn_set_float32_matmul_precision(encoded(precision)))


def get_float32_matmul_precision():
    return text(lib.kn_get_float32_matmul_precision())


# --- threads ----------------------------------------------------------------------------------------------------------

def get_num_threads():
    return lib.kn_get_num_threads()


def set_num_threads(n):
    """How many threads run a kernel of a CPU device whose launches are calls, as PoCL's are: at most as many as it has
    compute units."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ValueError('set_num_threads: a number of 1 or more is needed, not %r' % (n,))
    check(lib.kn_set_num_threads(n))


# --- dtypes and text --------------------------------------------------------------------------------------------------


def get_default_dtype():
    """Of tensors of Python's floats, and of parameters."""
    return float32


def set_default_dtype(d):
    """Nothing but float32."""
    if as_dtype(d) is not float32:
        raise ValueError('set_default_dtype: the default is float32; where %s is wanted, tensors and modules take '
                         "dtype='%s', and net.to(dtype='%s') converts" % ((as_dtype(d).name,) * 3))


_PROFILES = {'default': {}, 'short': {'precision': 2, 'edge_items': 2}, 'full': {'threshold': 2**63 - 1}}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors are printed. None leaves an option as it is, but for sci_mode, where it means that the numbers
    decide; `profile` ('default', 'short' or 'full') sets the others first."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError("set_printoptions: profile is 'default', 'short' or 'full', not %r" % (profile,))
        check(lib.kn_set_print_options_with(ffi.NULL))
    options = ffi.new('kn_print_options *', lib.kn_get_print_options())
    given = {'precision': precision, 'threshold': threshold, 'edge_items': edgeitems, 'line_width': linewidth}
    if threshold is not None:
        given['threshold'] = int(min(threshold, 2**63 - 1))
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in {**_PROFILES.get(profile, {}), **given}.items():
        setattr(options, name, value)
    options.sci_mode = {None: lib.KN_SCI_AUTO, True: lib.KN_SCI_ALWAYS, False: lib.KN_SCI_NEVER}[sci_mode]
    check(lib.kn_set_print_options_with(options))
