"""torch.nn.parameter."""
from .module import Parameter  # noqa: F401
