"""Copies of layers: copy.deepcopy(layer)."""
import copy


def deep_copy(layer, memo):
    """The layer made once more with its arguments, and then given the same parameters, buffers and modes. A layer that
    the library made, a part of another one, has no arguments that Python knows."""
    if '_made_with' not in layer.__dict__:
        raise TypeError('%s: only layers that were made by calling their class can be copied' % type(layer).__name__)
    initialise, arguments, keywords = layer._made_with
    made = object.__new__(type(layer))
    memo[id(layer)] = made
    initialise(made, *copy.deepcopy(arguments, memo), **copy.deepcopy(keywords, memo))
    _move(made, layer._parameters() + layer._buffers())
    made.load_state_dict(layer.state_dict())
    for (_, tensor), (_, copied) in zip(layer._parameters(), made._parameters()):
        copied.requires_grad = tensor.requires_grad
    for module, copied in zip(layer.modules(), made.modules()):
        copied.train(module.training)
    for name, value in layer.__dict__.items():
        if name not in made.__dict__:
            made.__dict__[name] = copy.deepcopy(value, memo)
    return made


def _move(module, named):
    """To the device of these tensors, and to their floating dtype."""
    for _, tensor in named[:1]:
        module.to(device=tensor.device)
    for dtype in [tensor.dtype for _, tensor in named if tensor.is_floating_point()][:1]:
        module.to(dtype=dtype)
