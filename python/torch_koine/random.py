"""torch.koine: random numbers, with torch.cuda's names. A state is a ByteTensor of 16 bytes: seed and offset."""
import torch
from torch._utils import _get_device_index

_ops = torch.ops.koine


def default_generator(device=None):
    return _ops.default_generator(_get_device_index(device, optional=True))


class _DefaultGenerators:
    """torch.koine.default_generators[0]; made when asked for, since the devices are searched for at first use."""

    def __len__(self):
        return _ops.device_count()

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError('there is no device koine:%d' % index)
        return default_generator(index)


default_generators = _DefaultGenerators()


def manual_seed(seed):
    """Seeds the current device."""
    default_generator().manual_seed(int(seed))


def manual_seed_all(seed):
    """Seeds all devices, without searching for them: torch.manual_seed calls it."""
    seed = int(seed) & (2**64 - 1)
    _ops.manual_seed_all(seed - 2**64 if seed >= 2**63 else seed)


def seed():
    return default_generator().seed()


def seed_all():
    """Gives all devices the same random seed."""
    manual_seed_all(default_generator().seed())


def initial_seed():
    return default_generator().initial_seed()


def get_rng_state(device='koine'):
    return default_generator(device).get_state()


def set_rng_state(new_state, device='koine'):
    default_generator(device).set_state(new_state)


def get_rng_state_all():
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states):
    for index, state in enumerate(new_states):
        default_generators[index].set_state(state)
