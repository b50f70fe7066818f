"""Settings of the whole process: determinism, and the precision of products."""
from ._c import check, lib, text


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
    check(lib.kn_set_float32_matmul_precision(precision.encode()))


def get_float32_matmul_precision():
    return text(lib.kn_get_float32_matmul_precision())
