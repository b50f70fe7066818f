"""torch.cuda.amp: what koine.amp has, for 'cuda'."""
import functools

from .. import amp

custom_fwd = functools.partial(amp.custom_fwd, device_type='cuda')
custom_bwd = functools.partial(amp.custom_bwd, device_type='cuda')


class autocast(amp.autocast):
    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__('cuda', dtype, enabled)


class GradScaler(amp.GradScaler):
    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__('cuda', init_scale, growth_factor, backoff_factor, growth_interval, enabled)
