"""Functions of samples, for TransformedDistribution: t(x), t.inv(y), and the logarithm of the derivative."""
from .base import ComposeTransform, Transform, identity_transform, sum_rightmost  # noqa: F401
from .elementwise import (AbsTransform, AffineTransform, CumulativeDistributionTransform, ExpTransform,  # noqa: F401
                          PowerTransform, SigmoidTransform, SoftplusTransform, TanhTransform)
from .matrices import CorrCholeskyTransform, LowerCholeskyTransform, PositiveDefiniteTransform  # noqa: F401
from .parts import CatTransform, IndependentTransform, ReshapeTransform, StackTransform  # noqa: F401
from .vectors import SoftmaxTransform, StickBreakingTransform  # noqa: F401
