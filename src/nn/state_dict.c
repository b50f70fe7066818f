/* nn/state_dict.c - listing a module's state and restoring it, strictly or for matching names only. */
#include "nn/state_dict.h"

#include "base/error.h"
#include "base/memory.h"
#include "nn/parametrize.h"
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

/* --- missing and unexpected names ------------------------------------------------------------------------------ */

static void free_names(char **names, int count)
{
    for (int i = 0; names != NULL && i < count; i++)
        kn_free(names[i]);
    kn_free(names);
}

void kn_incompatible_keys_free(kn_incompatible_keys *keys)
{
    if (keys == NULL)
        return;
    free_names(keys->missing_keys, keys->missing_count);
    free_names(keys->unexpected_keys, keys->unexpected_count);
    *keys = (kn_incompatible_keys){0};
}

/* The older names of those tensors that have one; for weight normalisation alone. */
static kn_status list_older(const kn_tensor_list *own, kn_tensor_list *older)
{
    for (int i = 0; i < own->count; i++) {
        kn_text name = {0};
        kn_status status = KN_OK;
        if (kn_parametrize_older_name(&name, own->names[i]))
            status = name.failed ? KN_ERR_MEMORY : kn_tensor_list_append(older, name.data, own->tensors[i]);
        kn_text_free(&name);
        KN_TRY(status);
    }
    return KN_OK;
}

/* The tensor in `state` for the module's `name`, under its own or its older name; NULL: none. */
static kn_tensor *given_for(const kn_tensor_list *state, const char *name)
{
    kn_tensor *found = kn_tensor_list_find(state, name);
    kn_text older = {0};
    if (found == NULL && kn_parametrize_older_name(&older, name) && !older.failed)
        found = kn_tensor_list_find(state, older.data);
    kn_text_free(&older);
    return found;
}

/* A tensor of several names is given under one of them: files need not repeat it. */
static bool is_given(const kn_tensor_list *own, int i, const kn_tensor_list *state)
{
    bool given = given_for(state, own->names[i]) != NULL;
    for (int other = 0; other < own->count && !given; other++)
        given = own->tensors[other] == own->tensors[i] && given_for(state, own->names[other]) != NULL;
    return given;
}

static kn_status add_name(char **names, int *count, const char *prefix, const char *name)
{
    kn_text text = {0};
    kn_text_format(&text, "%s%s", prefix, name);
    names[*count] = kn_text_finish(&text);
    if (names[*count] == NULL)
        return KN_ERR_MEMORY;
    ++*count;
    return KN_OK;
}

static kn_status find_missing(const kn_tensor_list *own, const kn_tensor_list *state, const char *prefix,
                              kn_incompatible_keys *keys)
{
    keys->missing_keys = kn_calloc((size_t)own->count, sizeof *keys->missing_keys);
    if (keys->missing_keys == NULL)
        return KN_ERR_MEMORY;
    for (int i = 0; i < own->count; i++)
        if (!is_given(own, i, state))
            KN_TRY(add_name(keys->missing_keys, &keys->missing_count, prefix, own->names[i]));
    return KN_OK;
}

static kn_status find_unexpected(const kn_tensor_list *own, const kn_tensor_list *state, const char *prefix,
                                 kn_incompatible_keys *keys)
{
    kn_tensor_list older = {0};
    keys->unexpected_keys = kn_calloc((size_t)state->count, sizeof *keys->unexpected_keys);
    kn_status status = keys->unexpected_keys != NULL ? list_older(own, &older) : KN_ERR_MEMORY;
    for (int i = 0; i < state->count && status == KN_OK; i++)
        if (kn_tensor_list_find(own, state->names[i]) == NULL && kn_tensor_list_find(&older, state->names[i]) == NULL)
            status = add_name(keys->unexpected_keys, &keys->unexpected_count, prefix, state->names[i]);
    kn_tensor_list_free(&older);
    return status;
}

static kn_status compare_names(const kn_tensor_list *own, const kn_tensor_list *state, const char *prefix,
                               kn_incompatible_keys *keys)
{
    *keys = (kn_incompatible_keys){0};
    kn_status status = find_missing(own, state, prefix, keys);
    if (status == KN_OK)
        status = find_unexpected(own, state, prefix, keys);
    if (status != KN_OK)
        kn_incompatible_keys_free(keys);
    return status;
}

/* --- mismatches ------------------------------------------------------------------------------------------------ */

/* Appends "; missing: a, b, c and 4 more". */
static void append_names(kn_text *text, const char *title, char *const *names, int count)
{
    const int shown = 5;
    for (int i = 0; i < count && i < shown; i++)
        kn_text_format(text, "%s\"%s\"", i == 0 ? title : ", ", names[i]);
    if (count > shown)
        kn_text_format(text, " and %d more", count - shown);
}

static void append_shapes(kn_text *text, const kn_tensor_list *own, const kn_tensor_list *state, const char *prefix)
{
    for (int i = 0; i < own->count; i++) {
        const kn_tensor *ours = own->tensors[i], *theirs = given_for(state, own->names[i]);
        if (theirs == NULL || kn_same_shape(ours, theirs))
            continue;
        char a[128], b[128];
        kn_text_format(text, "; \"%s%s\" is %s there and %s in the module", prefix, own->names[i],
                       kn_format_shape(a, sizeof a, theirs->ndim, theirs->shape),
                       kn_format_shape(b, sizeof b, ours->ndim, ours->shape));
        return; /* one is enough to show what is wrong */
    }
}

static kn_status check(kn_module *module, const kn_tensor_list *own, const kn_tensor_list *state, const char *prefix,
                       const kn_incompatible_keys *keys, const char *origin)
{
    kn_text problems = {0};
    if (keys != NULL) {
        append_names(&problems, "; missing: ", keys->missing_keys, keys->missing_count);
        append_names(&problems, "; unexpected: ", keys->unexpected_keys, keys->unexpected_count);
    }
    append_shapes(&problems, own, state, prefix);
    kn_status status = problems.failed ? KN_ERR_MEMORY : KN_OK;
    if (status == KN_OK && problems.length > 0)
        status = kn_fail(KN_ERR_FORMAT, "%s does not fit this %s%s", origin, module->type_name, problems.data);
    kn_text_free(&problems);
    return status;
}

/* --- restoring ------------------------------------------------------------------------------------------------- */

/* Copies the values to the module's device and dtypes, so that running out of memory happens before anything is
 * changed. NULL for names that the state lacks. */
static kn_status stage(const kn_tensor_list *own, const kn_tensor_list *state, kn_tensor **staged)
{
    for (int i = 0; i < own->count; i++) {
        const kn_tensor *ours = own->tensors[i];
        kn_tensor *theirs = given_for(state, own->names[i]);
        if (theirs == NULL)
            continue;
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
        if (status == KN_OK && staged[i] != NULL) {
            status = kn_tensor_copy(own->tensors[i], staged[i]);
            kn_tensor_bump_version(own->tensors[i]);
        }
        kn_release(staged[i]);
    }
    kn_free(staged);
    return status;
}

static kn_status load(kn_module *module, const kn_tensor_list *own, const kn_tensor_list *state, bool strict,
                      const char *prefix, kn_incompatible_keys *keys, const char *origin)
{
    kn_incompatible_keys found;
    KN_TRY(compare_names(own, state, prefix, &found));
    kn_status status = check(module, own, state, prefix, strict ? &found : NULL, origin);
    if (status == KN_OK)
        status = restore(own, state);
    if (status == KN_OK && keys != NULL)
        *keys = found;
    else
        kn_incompatible_keys_free(&found);
    return status;
}

kn_status kn_state_dict_load(kn_module *module, const kn_tensor_list *state, bool strict, const char *prefix,
                             kn_incompatible_keys *keys, const char *origin)
{
    kn_tensor_list own;
    KN_TRY(kn_state_dict_list(module, &own));
    kn_status status = load(module, &own, state, strict, prefix, keys, origin);
    kn_tensor_list_free(&own);
    return status;
}
