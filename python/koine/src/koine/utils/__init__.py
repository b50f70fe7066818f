"""torch.utils, of which there is `data`."""
from . import data  # noqa: F401
