"""Probability distributions: torch.distributions. Their methods are made of operators, and have gradients of the
parameters; samples are drawn from the generator of the parameters' device."""
from . import constraints, kl_pairs, transforms  # noqa: F401
from .categorical import Categorical, OneHotCategorical, OneHotCategoricalStraightThrough  # noqa: F401
from .constraint_registry import biject_to, transform_to  # noqa: F401
from .continuous_bernoulli import ContinuousBernoulli  # noqa: F401
from .counts import Bernoulli, Binomial, Poisson  # noqa: F401
from .distribution import Distribution  # noqa: F401
from .exponential_family import ExponentialFamily  # noqa: F401
from .gamma import Beta, Chi2, Dirichlet, Gamma, InverseGamma  # noqa: F401
from .half import HalfCauchy, HalfNormal  # noqa: F401
from .independent import Independent  # noqa: F401
from .kl import kl_divergence, register_kl  # noqa: F401
from .location_scale import Cauchy, Exponential, Gumbel, Laplace, LogNormal, Normal, Uniform  # noqa: F401
from .mixture import MixtureSameFamily  # noqa: F401
from .multinomial import Multinomial  # noqa: F401
from .multivariate_normal import LowRankMultivariateNormal, MultivariateNormal  # noqa: F401
from .normal_theory import FisherSnedecor, StudentT  # noqa: F401
from .powers import GeneralizedPareto, Kumaraswamy, Pareto, Weibull  # noqa: F401
from .random_matrices import LKJCholesky, Wishart  # noqa: F401
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical  # noqa: F401
from .transformed import LogisticNormal, TransformedDistribution  # noqa: F401
from .transforms import (AbsTransform, AffineTransform, CatTransform, ComposeTransform,  # noqa: F401
                         CorrCholeskyTransform, CumulativeDistributionTransform, ExpTransform, IndependentTransform,
                         LowerCholeskyTransform, PositiveDefiniteTransform, PowerTransform, ReshapeTransform,
                         SigmoidTransform, SoftmaxTransform, SoftplusTransform, StackTransform, StickBreakingTransform,
                         TanhTransform, Transform, identity_transform)
from .von_mises import VonMises  # noqa: F401
from .waiting import Geometric, NegativeBinomial  # noqa: F401
