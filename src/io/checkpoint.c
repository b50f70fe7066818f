/* io/checkpoint.c - saving and loading modules and optimizers as safetensors files. */
#include "io/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/state_dict.h"
#include "optim/state.h"

/* --- between lists and files ----------------------------------------------------------------------------------- */

kn_status kn_checkpoint_put(kn_tensor_file *file, const char *prefix, const char *name, kn_tensor *tensor)
{
    kn_text full = {0};
    kn_text_format(&full, "%s%s", prefix, name);
    char *key = kn_text_finish(&full);
    if (key == NULL)
        return KN_ERR_MEMORY;
    kn_tensor *host = NULL;
    kn_status status = kn_tensor_cast(&host, tensor, tensor->dtype, kn_device_host());
    if (status == KN_OK)
        status = kn_tensor_file_put(file, key, host);
    kn_release(host);
    kn_free(key);
    return status;
}

kn_status kn_checkpoint_put_list(kn_tensor_file *file, const char *prefix, const kn_tensor_list *list)
{
    for (int i = 0; i < list->count; i++)
        KN_TRY(kn_checkpoint_put(file, prefix, list->names[i], list->tensors[i]));
    return KN_OK;
}

kn_status kn_checkpoint_get_list(const kn_tensor_file *file, const char *prefix, kn_tensor_list *list)
{
    *list = (kn_tensor_list){0};
    size_t length = strlen(prefix);
    kn_status status = KN_OK;
    for (int i = 0; i < kn_tensor_file_count(file) && status == KN_OK; i++) {
        const char *name = kn_tensor_file_name(file, i);
        if (strncmp(name, prefix, length) == 0)
            status = kn_tensor_list_append(list, name + length, kn_tensor_file_at(file, i));
    }
    if (status != KN_OK)
        kn_tensor_list_free(list);
    return status;
}

/* --- modules --------------------------------------------------------------------------------------------------- */

kn_status kn_checkpoint_put_module(kn_tensor_file *file, const char *prefix, kn_module *module)
{
    kn_tensor_list list;
    KN_TRY(kn_state_dict_list(module, &list));
    kn_status status = kn_checkpoint_put_list(file, prefix, &list);
    kn_tensor_list_free(&list);
    return status;
}

/* A prefix that matches no name is a mistake, which a non-strict load would not notice. */
static kn_status get_module(const kn_tensor_file *file, kn_module *module, const kn_module_load_params *params,
                            const char *path)
{
    const char *prefix = params->prefix != NULL ? params->prefix : "";
    kn_tensor_list list;
    KN_TRY(kn_checkpoint_get_list(file, prefix, &list));
    kn_status status = KN_OK;
    if (!params->strict && list.count == 0 && kn_tensor_file_count(file) > 0)
        status = kn_fail(KN_ERR_FORMAT, "%s has no tensor whose name begins with \"%s\"; its first is \"%s\"", path,
                         prefix, kn_tensor_file_name(file, 0));
    if (status == KN_OK)
        status = kn_state_dict_load(module, &list, params->strict, prefix, params->keys, path);
    kn_tensor_list_free(&list);
    return status;
}

kn_status kn_checkpoint_get_module(const kn_tensor_file *file, const char *prefix, kn_module *module, const char *path)
{
    return get_module(file, module, &(kn_module_load_params){.strict = true, .prefix = prefix}, path);
}

kn_status kn_module_save(kn_module *module, const char *path)
{
    if (module == NULL || path == NULL)
        return kn_fail_argument_null("module_save", module == NULL ? "module" : "path");
    kn_tensor_file *file = kn_tensor_file_new();
    if (file == NULL)
        return KN_ERR_MEMORY;
    /* The key by which PyTorch's tools recognise their own layout. */
    kn_status status = kn_tensor_file_set_metadata(file, "format", "pt");
    if (status == KN_OK)
        status = kn_checkpoint_put_module(file, "", module);
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    return status;
}

kn_module_load_params kn_module_load_params_init(void) { return (kn_module_load_params){KN_MODULE_LOAD_DEFAULTS}; }

kn_status kn_module_load_with(kn_module *module, const char *path, const kn_module_load_params *params)
{
    params = params != NULL ? params : &(kn_module_load_params){KN_MODULE_LOAD_DEFAULTS};
    if (params->keys != NULL)
        *params->keys = (kn_incompatible_keys){0};
    if (module == NULL || path == NULL)
        return kn_fail_argument_null("module_load", module == NULL ? "module" : "path");
    kn_tensor_file *file;
    KN_TRY(kn_status_of(file = kn_load_safetensors(path)));
    kn_status status = get_module(file, module, params, path);
    kn_tensor_file_free(file);
    return status;
}

/* In parentheses: a macro of the same name takes the options. */
kn_status(kn_module_load)(kn_module *module, const char *path) { return kn_module_load_with(module, path, NULL); }

/* --- optimizers ------------------------------------------------------------------------------------------------ */

/* Metadata under the prefix and "optimizer" or "param_groups". */
static char *prefixed(const char *prefix, const char *name)
{
    kn_text key = {0};
    kn_text_format(&key, "%s%s", prefix, name);
    return kn_text_finish(&key);
}

static kn_status put_metadata(kn_tensor_file *file, const char *prefix, const char *name, const char *value)
{
    char *key = prefixed(prefix, name);
    kn_status status = key != NULL ? kn_tensor_file_set_metadata(file, key, value) : KN_ERR_MEMORY;
    kn_free(key);
    return status;
}

static kn_status get_metadata(const kn_tensor_file *file, const char *prefix, const char *name, const char **value)
{
    char *key = prefixed(prefix, name);
    *value = key != NULL ? kn_tensor_file_metadata(file, key) : NULL;
    kn_status status = key != NULL ? KN_OK : KN_ERR_MEMORY;
    kn_free(key);
    return status;
}

kn_status kn_checkpoint_put_optim(kn_tensor_file *file, const char *prefix, kn_optim *optim)
{
    char *groups = kn_optim_groups_to_json(optim);
    kn_status status = groups != NULL ? put_metadata(file, prefix, "param_groups", groups) : KN_ERR_MEMORY;
    kn_free(groups);
    KN_TRY(status);
    KN_TRY(put_metadata(file, prefix, "optimizer", kn_optim_type_name(optim)));
    int rank, size;
    char share[32];
    if (kn_optim_is_share(optim, &rank, &size)) {
        snprintf(share, sizeof share, KN_SHARE_FORMAT, rank, size);
        KN_TRY(put_metadata(file, prefix, "share", share));
    }
    kn_tensor_list list;
    KN_TRY(kn_optim_state_list(optim, &list));
    status = kn_checkpoint_put_list(file, prefix, &list);
    kn_tensor_list_free(&list);
    return status;
}

kn_status kn_checkpoint_get_optim(const kn_tensor_file *file, const char *prefix, kn_optim *optim, const char *path)
{
    const char *share;
    KN_TRY(get_metadata(file, prefix, "share", &share));
    if (share != NULL)
        return kn_fail(KN_ERR_FORMAT,
                       "%s holds a part of an optimizer's state, that of rank %s: load all parts with "
                       "kn_optim_zero_load",
                       path, share);
    kn_tensor_list list;
    KN_TRY(kn_checkpoint_get_list(file, prefix, &list));
    kn_status status = kn_checkpoint_get_optim_list(file, prefix, &list, optim, path);
    kn_tensor_list_free(&list);
    return status;
}

kn_status kn_checkpoint_get_optim_list(const kn_tensor_file *file, const char *prefix, const kn_tensor_list *list,
                                       kn_optim *optim, const char *path)
{
    const char *type, *groups;
    KN_TRY(get_metadata(file, prefix, "optimizer", &type));
    KN_TRY(get_metadata(file, prefix, "param_groups", &groups));
    if (type == NULL && groups == NULL)
        return kn_fail(KN_ERR_FORMAT,
                       "%s holds no optimizer state (no metadata \"%soptimizer\" and \"%sparam_groups\")", path, prefix,
                       prefix);
    if (type != NULL && strcmp(type, kn_optim_type_name(optim)) != 0)
        return kn_fail(KN_ERR_FORMAT, "%s holds the state of %s, but this optimizer is %s", path, type,
                       kn_optim_type_name(optim));
    return kn_optim_state_load(optim, list, groups, path);
}

kn_status kn_optim_save(kn_optim *optim, const char *path)
{
    if (optim == NULL || path == NULL)
        return kn_fail_argument_null("optim_save", optim == NULL ? "optim" : "path");
    kn_tensor_file *file = kn_tensor_file_new();
    if (file == NULL)
        return KN_ERR_MEMORY;
    kn_status status = kn_checkpoint_put_optim(file, "", optim);
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    return status;
}

kn_status kn_optim_load(kn_optim *optim, const char *path)
{
    if (optim == NULL || path == NULL)
        return kn_fail_argument_null("optim_load", optim == NULL ? "optim" : "path");
    kn_tensor_file *file;
    KN_TRY(kn_status_of(file = kn_load_safetensors(path)));
    kn_status status = kn_checkpoint_get_optim(file, "", optim, path);
    kn_tensor_file_free(file);
    return status;
}
