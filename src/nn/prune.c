/* nn/prune.c - masks of a module's parameters, by PyTorch's names: see koine/prune.h. */
#include "nn/prune.h"

#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/pointwise.h>
#include <koine/shape.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/computed.h"
#include "tensor/tensor.h"

/* --- the pruned tensor -------------------------------------------------------------------------------------------- */

/* "weight_orig", "weight_mask"; the caller frees it, NULL with an error. */
static char *suffixed(const char *name, const char *suffix)
{
    kn_text text = {0};
    kn_text_format(&text, "%s%s", name, suffix);
    return kn_text_finish(&text);
}

/* NULL: the module has none. */
static kn_tensor *find(kn_module *module, const char *name, const char *suffix)
{
    char *full = suffixed(name, suffix);
    const kn_module_tensor *entry = full ? kn_module_find_tensor(module, full) : NULL;
    kn_free(full);
    return entry ? entry->tensor : NULL;
}

static kn_tensor *compute(kn_module *module, const char *name)
{
    kn_tensor *mask = find(module, name, "_mask"), *orig = find(module, name, "_orig");
    if (!mask || !orig) {
        kn_fail(KN_ERR_STATE, "%s: the original or the mask of \"%s\" is missing", module->type_name, name);
        return kn_error_make_sticky();
    }
    return kn_mul(orig, mask->dtype == orig->dtype ? mask : kn_to_dtype(mask, orig->dtype));
}

/* Is the tensor pruned, rather than computed in another way? */
static bool is_pruned(const kn_module *module, const char *name)
{
    const kn_computed *computed = kn_computed_find(module, name);
    return computed && computed->compute == compute;
}

bool kn_prune_is_pruned(const kn_module *module)
{
    bool found = false;
    for (int i = 0; module && i < module->computed.count; i++)
        found = found || module->computed.items[i].compute == compute;
    for (int i = 0; module && i < module->num_children && !found; i++)
        found = kn_prune_is_pruned(module->children[i].module);
    return found;
}

/* --- applying a mask ---------------------------------------------------------------------------------------------- */

/* The tensor before this change: NULL with an error. */
static kn_tensor *current(const char *function, kn_module *module, const char *name)
{
    if (!module || !name) {
        kn_fail_argument_null(function, module ? "name" : "module");
        return kn_error_make_sticky();
    }
    const kn_module_tensor *entry = kn_module_find_tensor(module, name);
    if (entry && !entry->is_buffer)
        return entry->tensor;
    if (is_pruned(module, name))
        return compute(module, name);
    return kn_fail_null(KN_ERR_ARGUMENT, "%s: this %s has no parameter \"%s\"", function, module->type_name, name);
}

static kn_status check_scores(const char *function, const kn_tensor *scores, const kn_tensor *tensor)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (kn_same_shape(scores, tensor) && kn_dtype_is_floating(scores->dtype))
        return KN_OK;
    return kn_fail(KN_ERR_SHAPE, "%s: importance_scores must be floating, with the shape of the tensor %s, not %s",
                   function, kn_tensor_describe(a, sizeof a, tensor), kn_tensor_describe(b, sizeof b, scores));
}

/* Inside KN_NO_GRAD. `scores` NULL: the tensor itself. */
static kn_status state_of(kn_prune_state *state, const char *function, kn_module *module, const char *name,
                          kn_tensor *scores)
{
    kn_tensor *tensor = current(function, module, name);
    KN_TRY(kn_status_of(tensor));
    if (scores)
        KN_TRY(check_scores(function, scores, tensor));
    state->importance = kn_detach(scores ? scores : tensor);
    state->mask = is_pruned(module, name) ? find(module, name, "_mask") : kn_ones_like(tensor);
    return state->importance && state->mask ? KN_OK : kn_error_status();
}

/* The names of the first pruning; a parameter "weight" becomes "weight_orig", with the mask behind it. */
static kn_status begin(kn_module *module, const char *name, const char *orig, const char *mask_name, kn_tensor *mask)
{
    kn_tensor *tensor = kn_module_find_tensor(module, name)->tensor;
    KN_TRY(kn_module_add_tensor(module, orig, tensor, false));
    kn_status status = kn_module_add_tensor(module, mask_name, mask, true);
    if (status == KN_OK) {
        status = kn_computed_add(module, name, tensor, compute);
        if (status != KN_OK)
            kn_module_drop_tensor(module, mask_name);
    }
    kn_module_drop_tensor(module, status == KN_OK ? name : orig);
    return status;
}

static kn_status put_mask(kn_module *module, const char *name, kn_tensor *mask)
{
    if (is_pruned(module, name))
        return kn_copy_(find(module, name, "_mask"), mask);
    char *orig = suffixed(name, "_orig"), *mask_name = suffixed(name, "_mask");
    const kn_status status = orig && mask_name ? begin(module, name, orig, mask_name, mask) : KN_ERR_MEMORY;
    kn_free(orig);
    kn_free(mask_name);
    return status;
}

static kn_status prune(kn_module *module, const char *name, const kn_prune_how *how, const kn_prune_params *params)
{
    kn_prune_state state;
    KN_SCOPE;
    KN_NO_GRAD;
    KN_TRY(state_of(&state, how->function, module, name, params->importance_scores));
    kn_tensor *mask = kn_prune_new_mask(state, how);
    return mask ? put_mask(module, name, mask) : kn_error_status();
}

/* --- the methods -------------------------------------------------------------------------------------------------- */

kn_prune_params kn_prune_params_init(void) { return (kn_prune_params){KN_PRUNE_DEFAULTS}; }

static const kn_prune_params defaults = {KN_PRUNE_DEFAULTS};

kn_status kn_prune_identity(kn_module *module, const char *name)
{
    return prune(module, name, &(const kn_prune_how){.function = "prune_identity", .amount = kn_scalar_int(0)},
                 &defaults);
}

kn_status kn_prune_l1_unstructured_with(kn_module *module, const char *name, kn_scalar amount,
                                        const kn_prune_params *params)
{
    const kn_prune_how how = {.function = "prune_l1_unstructured", .amount = amount};
    return prune(module, name, &how, params ? params : &defaults);
}

kn_status kn_prune_random_unstructured_with(kn_module *module, const char *name, kn_scalar amount,
                                            const kn_prune_params *params)
{
    params = params ? params : &defaults;
    const kn_prune_how how = {
        .function = "prune_random_unstructured", .is_random = true, .amount = amount, .generator = params->generator};
    return prune(module, name, &how, params);
}

kn_status kn_prune_ln_structured_with(kn_module *module, const char *name, kn_scalar amount, double n, int dim,
                                      const kn_prune_params *params)
{
    const kn_prune_how how = {
        .function = "prune_ln_structured", .is_structured = true, .amount = amount, .n = n, .dim = dim};
    return prune(module, name, &how, params ? params : &defaults);
}

kn_status kn_prune_random_structured_with(kn_module *module, const char *name, kn_scalar amount, int dim,
                                          const kn_prune_params *params)
{
    params = params ? params : &defaults;
    const kn_prune_how how = {.function = "prune_random_structured",
                              .is_random = true,
                              .is_structured = true,
                              .amount = amount,
                              .n = 2,
                              .dim = dim,
                              .generator = params->generator};
    return prune(module, name, &how, params);
}

/* The combination of a mask with one of any numbers. */
static kn_tensor *combined(const char *function, kn_prune_state state, kn_tensor *mask)
{
    char a[KN_DESCRIBE], b[KN_DESCRIBE];
    if (!mask) {
        kn_fail_argument_null(function, "mask");
        return kn_error_make_sticky();
    }
    if (!kn_same_shape(mask, state.mask))
        return kn_fail_null(KN_ERR_SHAPE, "%s: the mask must have the shape of the tensor %s, not %s", function,
                            kn_tensor_describe(a, sizeof a, state.mask), kn_tensor_describe(b, sizeof b, mask));
    return kn_mul(state.mask, kn_to_dtype(mask, state.mask->dtype));
}

kn_status kn_prune_custom_from_mask(kn_module *module, const char *name, kn_tensor *mask)
{
    static const char function[] = "prune_custom_from_mask";
    kn_prune_state state;
    KN_SCOPE;
    KN_NO_GRAD;
    KN_TRY(state_of(&state, function, module, name, NULL));
    mask = combined(function, state, mask);
    return mask ? put_mask(module, name, mask) : kn_error_status();
}

/* --- several tensors ---------------------------------------------------------------------------------------------- */

/* The parts of `joined` that belong to the targets. */
static kn_status put_parts(const kn_prune_target *targets, const kn_prune_state *states, int count, kn_tensor *joined)
{
    int64_t at = 0;
    for (int i = 0; i < count; i++) {
        const kn_tensor *mask = states[i].mask;
        const int64_t size = kn_numel(mask);
        kn_tensor *part = kn_reshape(kn_narrow(joined, 0, at, size), mask->ndim, mask->shape);
        KN_TRY(kn_status_of(part = part ? kn_clone(part) : NULL));
        KN_TRY(put_mask(targets[i].module, targets[i].name, part));
        at += size;
    }
    return KN_OK;
}

static kn_status prune_jointly(const kn_prune_target *targets, int count, const kn_prune_how *how,
                               kn_prune_state *states, kn_tensor **flat)
{
    kn_prune_state joined;
    for (int i = 0; i < count; i++)
        KN_TRY(state_of(&states[i], how->function, targets[i].module, targets[i].name, targets[i].importance_scores));
    for (int i = 0; i < count; i++)
        flat[i] = kn_flatten(states[i].importance, 0, -1);
    KN_TRY(kn_status_of(joined.importance = kn_cat(flat, count, 0)));
    for (int i = 0; i < count; i++)
        flat[i] = kn_flatten(states[i].mask, 0, -1);
    KN_TRY(kn_status_of(joined.mask = kn_cat(flat, count, 0)));
    kn_tensor *mask = kn_prune_new_mask(joined, how);
    return mask ? put_parts(targets, states, count, mask) : kn_error_status();
}

kn_status kn_prune_global_unstructured_with(const kn_prune_target *targets, int count, kn_prune_method method,
                                            kn_scalar amount, const kn_prune_params *params)
{
    params = params ? params : &defaults;
    const kn_prune_how how = {.function = "prune_global_unstructured",
                              .is_random = method == KN_PRUNE_RANDOM_UNSTRUCTURED,
                              .amount = amount,
                              .generator = params->generator};
    if (!targets || count < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: at least one tensor must be given", how.function);
    if (method != KN_PRUNE_L1_UNSTRUCTURED && method != KN_PRUNE_RANDOM_UNSTRUCTURED)
        return kn_fail(KN_ERR_ARGUMENT, "%s: %d is not a kn_prune_method", how.function, (int)method);
    kn_prune_state *states = kn_calloc((size_t)count, sizeof *states + sizeof(kn_tensor *));
    if (!states)
        return KN_ERR_MEMORY;
    KN_SCOPE;
    KN_NO_GRAD;
    const kn_status status = prune_jointly(targets, count, &how, states, (kn_tensor **)(states + count));
    kn_free(states);
    return status;
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static kn_status make_permanent(kn_module *module, const char *name, const char *orig, const char *mask)
{
    KN_SCOPE;
    KN_NO_GRAD;
    kn_tensor *tensor = kn_module_find_tensor(module, orig)->tensor, *value = compute(module, name);
    KN_TRY(kn_status_of(value));
    KN_TRY(kn_copy_(tensor, value));
    const kn_computed *computed = kn_computed_find(module, name);
    kn_tensor *original = kn_retain(computed->original);
    kn_computed_remove(module, name);
    kn_status status = kn_module_add_tensor(module, name, tensor, false);
    if (status == KN_OK) {
        kn_module_drop_tensor(module, orig);
        kn_module_drop_tensor(module, mask);
    } else {
        (void)kn_computed_add(module, name, original, compute); /* there is room for it */
    }
    kn_release(original);
    return status;
}

kn_status kn_prune_remove(kn_module *module, const char *name)
{
    if (!module || !name)
        return kn_fail_argument_null("prune_remove", module ? "name" : "module");
    if (!is_pruned(module, name))
        return kn_fail(KN_ERR_ARGUMENT, "prune_remove: \"%s\" of this %s is not pruned", name, module->type_name);
    char *orig = suffixed(name, "_orig"), *mask = suffixed(name, "_mask");
    const kn_status status = orig && mask ? make_permanent(module, name, orig, mask) : KN_ERR_MEMORY;
    kn_free(orig);
    kn_free(mask);
    return status;
}
