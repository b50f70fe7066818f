"""Transforms of all real numbers to what a constraint allows: biject_to(constraint), one to one, and
transform_to(constraint), perhaps of more numbers than are needed but easier to optimise."""
from . import constraints, transforms


class ConstraintRegistry:
    def __init__(self):
        self._factories = {}

    def register(self, constraint, factory=None):
        """`factory(constraint)` makes the transform of a constraint, or of all of a class of them; without it, a
        decorator."""
        def add(factory):
            self._factories[constraint] = factory
            return factory

        return add if factory is None else add(factory)

    def __call__(self, constraint):
        """The constraint itself comes before its class."""
        for key in (constraint, *type(constraint).__mro__):
            if key in self._factories:
                return self._factories[key](constraint)
        raise NotImplementedError('there is no transform to "%s": register adds one' % (constraint,))


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _both(*keys):
    """Decorates a factory that also takes the registry."""
    def register(factory):
        for registry in (biject_to, transform_to):
            for key in keys:
                registry.register(key, lambda constraint, registry=registry: factory(constraint, registry))
        return factory

    return register


@_both(constraints.real)
def _real(constraint, registry):
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _positive(constraint, registry):
    return transforms.ExpTransform()


@_both(constraints.greater_than, constraints.greater_than_eq)
def _greater(constraint, registry):
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _less(constraint, registry):
    mirror = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), mirror])


@_both(constraints.unit_interval)
def _unit_interval(constraint, registry):
    return transforms.SigmoidTransform()


@_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint, registry):
    low = constraint.lower_bound
    scale = transforms.AffineTransform(low, constraint.upper_bound - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scale])


@_both(constraints.corr_cholesky)
def _corr_cholesky(constraint, registry):
    return transforms.CorrCholeskyTransform()


@_both(constraints.independent)
def _independent(constraint, registry):
    return transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


@_both(constraints.cat)
def _cat(constraint, registry):
    return transforms.CatTransform([registry(one) for one in constraint.cseq], constraint.dim, constraint.lengths)


@_both(constraints.stack)
def _stack(constraint, registry):
    return transforms.StackTransform([registry(one) for one in constraint.cseq], constraint.dim)


@biject_to.register(constraints.simplex)
def _broken_stick(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _softmax(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


def _positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


for _one in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_one, _positive_definite)
