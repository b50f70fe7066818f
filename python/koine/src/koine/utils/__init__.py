"""torch.utils, of which there are `data` and `checkpoint`."""
from . import checkpoint, data  # noqa: F401
