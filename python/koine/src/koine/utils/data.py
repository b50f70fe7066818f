"""koine.data under the name that it has in PyTorch."""
from ..data import *  # noqa: F401, F403
