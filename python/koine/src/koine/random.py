"""Random numbers: seeds, states and generators. A state is a tensor of uint8, on the host."""
import numpy

from ._c import check, checked, ffi, lib
from ._device import handle
from ._dtypes import uint8
from ._tensor import Tensor, tensor

_STATE = 64  # at least KN_RNG_STATE_SIZE, of which the library uses the first bytes


class Place:
    """Where the current device's random numbers are: whether any have been drawn since, and the way back."""

    def __init__(self):
        self.device = lib.kn_device_current()
        self.state = self._now()

    def _now(self):
        state = bytearray(_STATE)
        check(lib.kn_get_rng_state(self.device, ffi.from_buffer('uint8_t[]', state)))
        return state

    def has_passed(self):
        return self._now() != self.state

    def go_back(self):
        check(lib.kn_set_rng_state(self.device, ffi.from_buffer('uint8_t[]', self.state)))


def _read(get, *source):
    state = numpy.zeros(_STATE, 'uint8')
    check(get(*source, ffi.from_buffer('uint8_t[]', state)))
    return tensor(state, device='host')


def _bytes(state):
    """Of a state, which load() puts on the current device."""
    if not isinstance(state, Tensor) or state.shape != (_STATE,) or state.dtype is not uint8:
        raise TypeError('a state of random numbers is a tensor that get_rng_state or get_state returned')
    return ffi.from_buffer('uint8_t[]', state.numpy())


class Generator:
    """A source of random numbers of its own: koine.rand(3, generator=g)."""

    def __init__(self, device=None):
        self._h = ffi.gc(checked(lib.kn_generator_new(handle(device))), lib.kn_generator_free)

    def manual_seed(self, seed):
        check(lib.kn_generator_manual_seed(self._h, seed % 2**64))
        return self

    def initial_seed(self):
        return lib.kn_generator_initial_seed(self._h)

    def get_state(self):
        return _read(lib.kn_generator_get_state, self._h)

    def set_state(self, state):
        check(lib.kn_generator_set_state(self._h, _bytes(state)))


def manual_seed(seed):
    """Seeds the generators of all devices."""
    lib.kn_manual_seed(seed % 2**64)


def seed():
    """Seeds them with a number from the system, and returns it."""
    return lib.kn_seed()


def initial_seed(device=None):
    return lib.kn_initial_seed(handle(device) or lib.kn_device_current())


def get_rng_state(device=None):
    return _read(lib.kn_get_rng_state, handle(device) or lib.kn_device_current())


def set_rng_state(state, device=None):
    check(lib.kn_set_rng_state(handle(device) or lib.kn_device_current(), _bytes(state)))
