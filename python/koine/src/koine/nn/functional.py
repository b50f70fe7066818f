"""torch.nn.functional: the same functions as in koine."""
from .. import _functions
from .. import _ops as _operators


def __getattr__(name):
    if name.startswith('__'):
        raise AttributeError(name)
    found = getattr(_functions, name) if name in _functions.PUBLIC else _operators.function(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *_functions.PUBLIC, *_operators.names()})
