"""torch.nn: modules, layers, losses."""
from . import _transformer, containers, functional, init, lazy, parallel, parameter, utils  # noqa: F401
from ._layers import CLASSES
from ._parameter import Buffer, Parameter  # noqa: F401
from .lazy import UninitializedBuffer, UninitializedParameter  # noqa: F401
from .module import Layer, Module  # noqa: F401

CLASSES.update(containers.CLASSES)
globals().update(CLASSES)
globals().update(lazy.CLASSES)
