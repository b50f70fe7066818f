"""Random numbers: seeds, states and generators."""
from ._c import check, checked, ffi, lib
from ._device import handle


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
        """The state as bytes."""
        state = ffi.new('uint8_t[]', _STATE)
        check(lib.kn_generator_get_state(self._h, state))
        return bytes(state)

    def set_state(self, state):
        check(lib.kn_generator_set_state(self._h, ffi.new('uint8_t[]', bytes(state))))


_STATE = 64  # at least KN_RNG_STATE_SIZE, of which the library uses the first bytes


def manual_seed(seed):
    """Seeds the generators of all devices."""
    lib.kn_manual_seed(seed % 2**64)


def seed():
    """Seeds them with a number from the system, and returns it."""
    return lib.kn_seed()


def initial_seed(device=None):
    return lib.kn_initial_seed(handle(device) or lib.kn_device_current())


def get_rng_state(device=None):
    state = ffi.new('uint8_t[]', _STATE)
    check(lib.kn_get_rng_state(handle(device) or lib.kn_device_current(), state))
    return bytes(state)


def set_rng_state(state, device=None):
    check(lib.kn_set_rng_state(handle(device) or lib.kn_device_current(), ffi.new('uint8_t[]', bytes(state))))
