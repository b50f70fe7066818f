/* train/device_log_norm.c - the norm of all gradients and of each: one launch per eight gradients, and one for the
 * sums. */
#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/device_log.h"

#define SLOTS 8 /* gradients per launch: must match cl/train/grad_norm.cl */
#define VALUES_PER_PART 8192
#define MAX_PARTS 64

#define SOURCE "train/grad_norm.cl"

/* The gradients of an entry's parameters, contiguous and of one dtype; NULL for a parameter without one. */
typedef struct gradients {
    kn_tensor **tensors;
    int count;
    int64_t longest;
    kn_dtype dtype;
    kn_device *device;
} gradients;

static void drop(gradients *g)
{
    for (int i = 0; g->tensors && i < g->count; i++)
        kn_release(g->tensors[i]);
    kn_free(g->tensors);
}

/* Dtype and device come from the first gradient, or from the first parameter without one; float32 for f16. */
static void choose(gradients *g, const kn_log_entry *entry)
{
    const kn_tensor *like = entry->parameters[0];
    for (int i = 0; i < entry->num_parameters; i++) {
        if (kn_grad(entry->parameters[i])) {
            like = kn_grad(entry->parameters[i]);
            break;
        }
    }
    g->dtype = like->dtype == KN_F64 ? KN_F64 : KN_F32;
    g->device = like->storage->device;
}

static kn_status collect(gradients *g, const kn_log_entry *entry)
{
    for (int i = 0; i < g->count; i++) {
        kn_tensor *gradient = kn_grad(entry->parameters[i]);
        if (!gradient)
            continue;
        if (gradient->storage->device != g->device)
            return kn_fail(KN_ERR_DEVICE, "device_log_grad_norm: \"%s\" has gradients on %s and on %s", entry->name,
                           kn_device_string(g->device), kn_device_string(gradient->storage->device));
        KN_TRY(gradient->dtype == g->dtype ? kn_tensor_contiguous(&g->tensors[i], gradient)
                                           : kn_tensor_cast(&g->tensors[i], gradient, g->dtype, g->device));
        if (kn_numel(gradient) > g->longest)
            g->longest = kn_numel(gradient);
    }
    return KN_OK;
}

/* Unused slots are not launched but still need arguments: an empty range of `parts`. */
static kn_status launch_parts(const gradients *g, int first, const kn_tensor *parts, int64_t count)
{
    const kn_limits *limits = kn_device_limits(g->device);
    const int slots = g->count - first < SLOTS ? g->count - first : SLOTS;
    kn_arg args[2 * SLOTS + 3];
    int n = 0;
    for (int i = 0; i < SLOTS; i++) {
        const kn_tensor *gradient = i < slots ? g->tensors[first + i] : NULL;
        args[n++] = kn_arg_tensor(gradient ? gradient : parts);
        args[n++] = kn_arg_i64(gradient ? kn_numel(gradient) : 0);
    }
    args[n++] = kn_arg_tensor(parts);
    args[n++] = kn_arg_i64(first);
    args[n++] = kn_arg_i64(count);
    size_t local = limits->is_cpu ? 1 : limits->max_work_group_size < 256 ? limits->max_work_group_size : 256;
    return kn_run(kn_stream_current(g->device), .source = SOURCE, .options = kn_dtype_options(g->dtype),
                  .kernel = "norm_parts", .operation = "device_log_grad_norm", .dims = 2,
                  .global = {(size_t)count * local, (size_t)slots}, .local = {local, 1}, .args = args, .num_args = n);
}

static kn_status launch(kn_device_log *log, const kn_log_entry *entry, const gradients *g)
{
    const kn_limits *limits = kn_device_limits(g->device);
    int64_t count = limits->is_cpu ? (int64_t)kn_work_items(limits, g->longest, VALUES_PER_PART)
                                   : (g->longest + VALUES_PER_PART - 1) / VALUES_PER_PART;
    count = count < 1 ? 1 : count > MAX_PARTS ? MAX_PARTS : count;
    const int64_t total = g->count * count;
    kn_tensor *parts;
    KN_TRY(kn_tensor_new(&parts, g->dtype, 1, &total, g->device));
    kn_status status = KN_OK;
    for (int first = 0; first < g->count && status == KN_OK; first += SLOTS)
        status = launch_parts(g, first, parts, count);
    size_t local = limits->is_cpu ? 1 : limits->max_work_group_size < 256 ? limits->max_work_group_size : 256;
    if (status == KN_OK)
        status = kn_run(kn_stream_current(g->device), .source = SOURCE, .options = kn_dtype_options(g->dtype),
                        .kernel = "norm_total", .operation = "device_log_grad_norm", .dims = 1, .global = {local},
                        .local = {local},
                        KN_ARGS(kn_arg_tensor(parts), kn_log_arg(log, entry), kn_arg_i64(g->count), kn_arg_i64(count),
                                kn_arg_i32(entry->skips_infinite)));
    kn_release(parts);
    return status;
}

kn_status kn_device_log_grad_norm(kn_device_log *log, int entry)
{
    kn_log_entry *norm = kn_log_entry_of(log, entry, KN_ENTRY_NORM, "device_log_grad_norm");
    if (!norm)
        return kn_error_status();
    gradients g = {.count = norm->num_parameters};
    choose(&g, norm);
    if (kn_device_is_host(g.device))
        return kn_fail(KN_ERR_DEVICE, "device_log_grad_norm: the parameters of \"%s\" are on the host; move the module",
                       norm->name);
    g.tensors = kn_calloc((size_t)g.count, sizeof *g.tensors);
    kn_status status = g.tensors ? collect(&g, norm) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_log_prepare(log, norm, g.device, g.dtype);
    if (status == KN_OK)
        status = launch(log, norm, &g);
    drop(&g);
    return status;
}
