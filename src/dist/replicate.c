/* dist/replicate.c - copies parameters and buffers to all devices in few packed transfers, and makes modules of
 * them. */
#include "dist/replicate.h"

/* The module's state, each tensor once: those that need gradients first, because one recorded call copies them all. */
typedef struct module_state {
    const char *function;
    const kn_device *device; /* where all must be */
    kn_tensor **tensors;
    int count, recorded;
    bool want_recorded; /* what this walk collects */
} module_state;

static kn_status count_one(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    module_state *state = user;
    (void)is_buffer;
    state->count++;
    if (kn_device_of(tensor) == state->device)
        return KN_OK;
    return kn_fail(KN_ERR_DEVICE,
                   "%s: \"%s\" is on %s, but parameters and buffers must be on the first of the devices, %s: move them "
                   "with kn_module_to",
                   state->function, name, kn_device_string(kn_device_of(tensor)), kn_device_string(state->device));
}

static kn_status collect_one(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    module_state *state = user;
    (void)name;
    (void)is_buffer;
    if (kn_is_recorded(tensor) != state->want_recorded)
        return KN_OK;
    for (int t = 0; t < state->count; t++)
        if (state->tensors[t] == tensor)
            return KN_OK; /* shared by two layers */
    state->tensors[state->count++] = tensor;
    return KN_OK;
}

/* The caller frees `tensors`. */
static kn_status collect(module_state *state, kn_module *module)
{
    KN_TRY(kn_module_each(module, count_one, state));
    state->tensors = kn_calloc((size_t)state->count, sizeof *state->tensors);
    if (!state->tensors)
        return KN_ERR_MEMORY;
    state->count = 0;
    state->want_recorded = true;
    KN_TRY(kn_module_each(module, collect_one, state));
    state->recorded = state->count;
    state->want_recorded = false;
    return kn_module_each(module, collect_one, state);
}

/* copies[i * count + t] of tensor t on others[i]. */
static kn_status copy_state(const module_state *state, kn_device *const *others, int num_others, kn_tensor **copies)
{
    int recorded = state->recorded, rest = state->count - recorded;
    size_t results = (size_t)state->count * (size_t)num_others;
    kn_tensor **block = kn_calloc(results, sizeof *block), **plain = block + (size_t)recorded * (size_t)num_others;
    if (!block)
        return KN_ERR_MEMORY;
    kn_status status = kn_broadcast_recorded(state->tensors, recorded, others, num_others, 0, block);
    if (status == KN_OK) {
        status = kn_broadcast_list(state->tensors + recorded, rest, others, num_others, 0, plain);
        if (status != KN_OK)
            kn_release_all(block, recorded * num_others);
    }
    for (int i = 0; i < num_others && status == KN_OK; i++)
        for (int t = 0; t < state->count; t++)
            copies[i * state->count + t] = t < recorded ? block[i * recorded + t] : plain[i * rest + t - recorded];
    kn_free(block);
    return status;
}

static kn_status build(const module_state *state, kn_module *module, int num_devices, int first, kn_tensor **copies,
                       kn_module **replicas)
{
    kn_status status = KN_OK;
    for (int i = first; i < num_devices && status == KN_OK; i++) {
        kn_tensor **own = i == 0 ? state->tensors : copies + (size_t)(i - 1) * (size_t)state->count;
        const kn_replica_map map = {.originals = state->tensors, .copies = own, .count = state->count};
        status = kn_module_replica_new(&replicas[i], module, &map);
        for (int made = first; made < i && status != KN_OK; made++)
            kn_module_free(replicas[made]);
    }
    return status;
}

kn_status kn_replicate(const char *function, kn_module *module, kn_device *const *devices, int num_devices, int first,
                       kn_module **replicas)
{
    module_state state = {.function = function, .device = devices[0]};
    kn_tensor **copies = NULL;
    int results = 0;
    kn_status status = collect(&state, module);
    if (status == KN_OK) {
        results = state.count * (num_devices - 1);
        copies = kn_calloc((size_t)results, sizeof *copies);
        status = copies ? copy_state(&state, devices + 1, num_devices - 1, copies) : KN_ERR_MEMORY;
    }
    if (status == KN_OK)
        status = build(&state, module, num_devices, first, copies, replicas);
    if (copies)
        kn_release_all(copies, results);
    kn_free(copies);
    kn_free(state.tensors);
    return status;
}

kn_status kn_module_replicate(kn_module *module, kn_device *const *devices, int num_devices, kn_module **replicas)
{
    if (!module || !replicas)
        return kn_fail_argument_null("module_replicate", module ? "replicas" : "module");
    KN_TRY(kn_check_device_list("module_replicate", devices, num_devices, false));
    kn_module *made[KN_MAX_DEVICES];
    KN_TRY(kn_replicate("module_replicate", module, devices, num_devices, 0, made));
    for (int i = 0; i < num_devices; i++)
        replicas[i] = made[i];
    return KN_OK;
}
