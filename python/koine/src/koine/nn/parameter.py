"""torch.nn.parameter."""
from ._parameter import Buffer, Parameter  # noqa: F401
from .lazy import UninitializedBuffer, UninitializedParameter, is_lazy  # noqa: F401
