"""Deviates that are proposed until they are accepted."""
from .. import _functions


def accepted(propose):
    """propose() returns proposals and where they are rejected. Where the question cannot be answered, as of parameters
    that are NaN, that must not be: else the loop would not end."""
    values, rejected = propose()
    while rejected.any():
        others, failed = propose()
        values, rejected = _functions.where(rejected, others, values), rejected & failed
    return values
