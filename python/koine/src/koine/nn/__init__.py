"""torch.nn: modules, layers, losses."""
from . import (_transformer, containers, functional, init, lazy, linear_loss, parallel,  # noqa: F401
               parameter, utils)
from ._layers import CLASSES
from ._parameter import Buffer, Parameter  # noqa: F401
from .lazy import UninitializedBuffer, UninitializedParameter  # noqa: F401
from .linear_loss import LinearCrossEntropyLoss, LinearCrossEntropyOptions  # noqa: F401
from .module import Layer, Module  # noqa: F401

CLASSES.update(containers.CLASSES)
globals().update(CLASSES)
globals().update(lazy.CLASSES)
