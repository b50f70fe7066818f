"""The networks of bench/models.py, written for either package `t`: koine or torch. Each module has a function
architectures(t), which returns

    name: (make the module, loss of (module, inputs, target), inputs, target)

with inputs and target as NumPy arrays."""
from . import images, others, sequences


def architectures(t):
    return {**images.architectures(t), **sequences.architectures(t), **others.architectures(t)}
