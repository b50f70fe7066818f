"""torch.nn.parameter."""
from .lazy import UninitializedBuffer, UninitializedParameter, is_lazy  # noqa: F401
from .module import Parameter  # noqa: F401
