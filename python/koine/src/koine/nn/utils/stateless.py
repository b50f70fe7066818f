"""torch.nn.utils.stateless: the older name of koine.func.functional_call."""
from .._functional_call import functional_call  # noqa: F401
