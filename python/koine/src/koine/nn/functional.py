"""torch.nn.functional: the same functions as in koine."""
from .. import _functions
from .. import _ops as _operators


def __getattr__(name):
    if name.startswith('__'):
        raise AttributeError(name)
    return getattr(_functions, name) if name in _functions.PUBLIC else _operators.function(name)
