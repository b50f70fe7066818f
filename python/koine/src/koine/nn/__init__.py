"""torch.nn: modules, layers, losses."""
from . import functional, init, utils  # noqa: F401
from ._layers import CLASSES
from .containers import ModuleDict, ModuleList, Sequential  # noqa: F401
from .module import Layer, Module, Parameter  # noqa: F401

globals().update(CLASSES)
CLASSES.update({'Sequential': Sequential, 'ModuleList': ModuleList, 'ModuleDict': ModuleDict})
