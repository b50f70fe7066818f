"""torch.compile, which has nothing left to do."""


def compile(model=None, **options):
    """The model or function itself; without one a decorator, as in @koine.compile(mode='default'). Options have no
    effect. Kernels are compiled for the device when they are first used, and a step that koine.graph captures is
    replayed with little of Python's time, its chains of elementwise operators fused into one kernel each
    (docs/fusion.md)."""
    if model is None:
        return lambda function: compile(function, **options)
    if not callable(model):
        raise TypeError('compile: a module or a function is needed, not %s' % type(model).__name__)
    return model
