/* tensor/generator.c - Philox generators, one by default for each device: a seed and an offset, counted in blocks of
 * four words. */
#include <koine/random.h>
#include <stdatomic.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/threads.h"
#include "tensor/tensor.h"

#define DEFAULT_SEED UINT64_C(67280421310721) /* PyTorch's default */

struct kn_generator {
    atomic_int references; /* the user's, and one for each graph that draws from it; 0: a device's default one */
    kn_device *device;
    kn_philox state; /* under the lock */
};

/* One lock for all: it is held for a few instructions. */
static struct {
    kn_mutex lock;
    bool ready;
    kn_generator defaults[KN_MAX_DEVICES];
} all = {.lock = KN_MUTEX_INIT};

/* --- making and freeing ------------------------------------------------------------------------------------------- */

static void prepare_locked(void)
{
    for (int i = 0; i < KN_MAX_DEVICES && !all.ready; i++)
        all.defaults[i].state.seed = DEFAULT_SEED;
    all.ready = true;
}

kn_generator *kn_generator_default(kn_device *device)
{
    if (!device && !(device = kn_device_current()))
        return kn_error_make_sticky();
    kn_lock(&all.lock);
    prepare_locked();
    kn_generator *generator = &all.defaults[kn_device_slot(device)];
    generator->device = device;
    kn_unlock(&all.lock);
    return generator;
}

static kn_generator *make(kn_device *device, kn_philox state)
{
    kn_generator *generator = kn_calloc(1, sizeof *generator);
    if (!generator)
        return kn_error_make_sticky();
    atomic_init(&generator->references, 1);
    generator->device = device;
    generator->state = state;
    return generator;
}

kn_generator *kn_generator_new(kn_device *device)
{
    if (!device && !(device = kn_device_current()))
        return kn_error_make_sticky();
    return make(device, (kn_philox){.seed = DEFAULT_SEED});
}

kn_generator *kn_generator_clone(const kn_generator *generator)
{
    if (!generator)
        return kn_fail_argument_null("kn_generator_clone", "generator"), kn_error_make_sticky();
    return make(generator->device, kn_generator_state(generator));
}

static void retain(kn_generator *generator)
{
    if (atomic_load(&generator->references) > 0)
        atomic_fetch_add(&generator->references, 1);
}

void kn_generator_free(kn_generator *generator)
{
    if (generator && atomic_load(&generator->references) > 0 && atomic_fetch_sub(&generator->references, 1) == 1)
        kn_free(generator);
}

/* --- the state ---------------------------------------------------------------------------------------------------- */

kn_device *kn_generator_device(const kn_generator *generator) { return generator ? generator->device : NULL; }

kn_philox kn_generator_state(const kn_generator *generator)
{
    kn_lock(&all.lock);
    const kn_philox state = generator->state;
    kn_unlock(&all.lock);
    return state;
}

void kn_generator_assign(kn_generator *generator, kn_philox state)
{
    kn_lock(&all.lock);
    generator->state = state;
    kn_unlock(&all.lock);
}

void kn_manual_seed(uint64_t seed)
{
    kn_lock(&all.lock);
    for (int i = 0; i < KN_MAX_DEVICES; i++)
        all.defaults[i].state = (kn_philox){.seed = seed};
    all.ready = true;
    kn_unlock(&all.lock);
}

kn_status kn_generator_check(const kn_generator *generator, const kn_device *device)
{
    if (!generator || generator->device == device)
        return KN_OK;
    return kn_fail(
        KN_ERR_DEVICE,
        "the generator belongs to %s, but the tensor is on %s: use a generator of that device (kn_generator_new)",
        kn_device_string(generator->device), kn_device_string(device));
}

static kn_philox take(kn_generator *generator, uint64_t blocks)
{
    kn_lock(&all.lock);
    const kn_philox taken = generator->state;
    generator->state.offset += blocks;
    kn_unlock(&all.lock);
    return taken;
}

/* --- draws in a graph ------------------------------------------------------------------------- *
 * A capture advances no generator: each replay draws what the step would have drawn. */

typedef struct recorded_draw {
    kn_generator *generator; /* one reference */
    uint64_t blocks;
    kn_philox *variable; /* the recording's variable */
} recorded_draw;

static kn_status replay_draw(void *user)
{
    const recorded_draw *draw = user;
    *draw->variable = take(draw->generator, draw->blocks);
    return KN_OK;
}

static void drop_draw(void *user)
{
    kn_generator_free(((recorded_draw *)user)->generator);
    kn_free(user);
}

/* If memory is short, returns the state at capture time; the capture fails then. If another thread is capturing,
 * nothing is recorded: the launch that would use the draw fails. */
static kn_philox record_draw(kn_stream *stream, kn_generator *generator, uint64_t blocks)
{
    kn_philox now = take(generator, 0);
    recorded_draw *draw = kn_malloc(sizeof *draw);
    kn_philox *variable = draw ? kn_capture_variable(stream, sizeof *variable) : NULL;
    if (!variable) {
        kn_free(draw);
        kn_capture_fail(stream, kn_error_status());
        return now;
    }
    retain(generator);
    *draw = (recorded_draw){generator, blocks, variable};
    *variable = now;
    if (kn_capture_on_replay(stream, replay_draw, draw, drop_draw) == KN_OK)
        now.live = variable;
    else
        kn_capture_fail(stream, kn_error_status());
    return now;
}

kn_philox kn_generator_reserve(kn_generator *generator, kn_device *device, uint64_t count)
{
    uint64_t blocks = (count + 3) / 4;
    kn_stream *stream = kn_device_is_host(device) ? NULL : kn_stream_current(device);
    generator = generator ? generator : kn_generator_default(device);
    return kn_stream_is_capturing(stream) ? record_draw(stream, generator, blocks) : take(generator, blocks);
}
