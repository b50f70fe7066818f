/* nn/state_dict.c - listing a module's state and restoring it, strictly. */
#include "nn/state_dict.h"

#include "base/error.h"
#include "base/memory.h"
#include "tensor/tensor.h"

static kn_status append(const char *name, kn_tensor *tensor, bool is_buffer, void *user)
{
    (void)is_buffer;
    return kn_tensor_list_append(user, name, tensor);
}

kn_status kn_state_dict_list(kn_module *module, kn_tensor_list *list)
{
    *list = (kn_tensor_list){0};
    kn_status status = kn_module_each(module, append, list);
    if (status != KN_OK)
        kn_tensor_list_free(list);
    return status;
}

/* Appends "; missing: a, b, c and 4 more" with the names of `wanted` that `given` lacks. */
static void append_absent(kn_text *text, const char *title, const kn_tensor_list *wanted, const kn_tensor_list *given)
{
    const int shown = 5;
    int absent = 0;
    for (int i = 0; i < wanted->count; i++) {
        if (kn_tensor_list_find(given, wanted->names[i]) != NULL)
            continue;
        if (absent < shown)
            kn_text_format(text, "%s\"%s\"", absent == 0 ? title : ", ", wanted->names[i]);
        absent++;
    }
    if (absent > shown)
        kn_text_format(text, " and %d more", absent - shown);
}

static void append_shapes(kn_text *text, const kn_tensor_list *own, const kn_tensor_list *state)
{
    for (int i = 0; i < own->count; i++) {
        const kn_tensor *ours = own->tensors[i], *theirs = kn_tensor_list_find(state, own->names[i]);
        if (theirs == NULL || kn_same_shape(ours, theirs))
            continue;
        char a[128], b[128];
        kn_text_format(text, "; \"%s\" is %s there and %s in the module", own->names[i],
                       kn_format_shape(a, sizeof a, theirs->ndim, theirs->shape),
                       kn_format_shape(b, sizeof b, ours->ndim, ours->shape));
        return; /* one is enough to see what is wrong */
    }
}

static kn_status check(kn_module *module, const kn_tensor_list *own, const kn_tensor_list *state, const char *origin)
{
    kn_text problems = {0};
    append_absent(&problems, "; missing: ", own, state);
    append_absent(&problems, "; unexpected: ", state, own);
    append_shapes(&problems, own, state);
    kn_status status = problems.failed ? KN_ERR_MEMORY : KN_OK;
    if (status == KN_OK && problems.length > 0)
        status = kn_fail(KN_ERR_FORMAT, "%s does not fit this %s%s", origin, module->type_name, problems.data);
    kn_text_free(&problems);
    return status;
}

/* The values on the module's device and in its dtypes: all that can fail for want of memory happens before anything is
 * changed. */
static kn_status stage(const kn_tensor_list *own, const kn_tensor_list *state, kn_tensor **staged)
{
    for (int i = 0; i < own->count; i++) {
        const kn_tensor *ours = own->tensors[i];
        kn_tensor *theirs = kn_tensor_list_find(state, own->names[i]);
        kn_status status = kn_tensor_cast(&staged[i], theirs, ours->dtype, ours->storage->device);
        if (status != KN_OK) {
            kn_error_prefix("\"%s\"", own->names[i]);
            return status;
        }
    }
    return KN_OK;
}

static kn_status restore(const kn_tensor_list *own, const kn_tensor_list *state)
{
    kn_tensor **staged = kn_calloc((size_t)own->count, sizeof *staged);
    if (staged == NULL)
        return KN_ERR_MEMORY;
    kn_status status = stage(own, state, staged);
    for (int i = 0; i < own->count; i++) {
        if (status == KN_OK) {
            status = kn_tensor_copy(own->tensors[i], staged[i]);
            kn_tensor_bump_version(own->tensors[i]);
        }
        kn_release(staged[i]);
    }
    kn_free(staged);
    return status;
}

kn_status kn_state_dict_load(kn_module *module, const kn_tensor_list *state, const char *origin)
{
    kn_tensor_list own;
    KN_TRY(kn_state_dict_list(module, &own));
    kn_status status = check(module, &own, state, origin);
    if (status == KN_OK)
        status = restore(&own, state);
    kn_tensor_list_free(&own);
    return status;
}
