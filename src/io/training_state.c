/* io/training_state.c - saving and loading schedules, gradient scalers and averages as safetensors files. */
#include "optim/training_state.h"

#include <string.h>

#include "base/error.h"
#include "io/checkpoint.h"
#include "optim/lr_scheduler.h"

/* Writes a list that `status` tells to be complete, and frees it. `kind`: the value of the metadata "koine". */
static kn_status save(kn_tensor_list *list, kn_status status, const char *kind, const char *path)
{
    kn_tensor_file *file = status == KN_OK ? kn_tensor_file_new() : NULL;
    if (status == KN_OK)
        status = file != NULL ? kn_tensor_file_set_metadata(file, "koine", kind) : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = kn_checkpoint_put_list(file, "", list);
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    kn_tensor_list_free(list);
    return status;
}

/* The tensors of a file of this kind. */
static kn_status load(kn_tensor_list *list, const char *kind, const char *path)
{
    *list = (kn_tensor_list){0};
    kn_tensor_file *file;
    KN_TRY(kn_status_of(file = kn_load_safetensors(path)));
    const char *found = kn_tensor_file_metadata(file, "koine");
    kn_status status = KN_OK;
    if (found != NULL && strcmp(found, kind) != 0)
        status = kn_fail(KN_ERR_FORMAT, "%s holds the state of %s, not of %s", path, found, kind);
    if (status == KN_OK)
        status = kn_checkpoint_get_list(file, "", list);
    kn_tensor_file_free(file);
    return status;
}

kn_status kn_lr_scheduler_save(const kn_lr_scheduler *scheduler, const char *path)
{
    if (scheduler == NULL || path == NULL)
        return kn_fail_argument_null("lr_scheduler_save", scheduler == NULL ? "scheduler" : "path");
    kn_tensor_list list = {0};
    return save(&list, kn_lr_state_list(scheduler, "state", &list), scheduler->row->name, path);
}

kn_status kn_lr_scheduler_load(kn_lr_scheduler *scheduler, const char *path)
{
    if (scheduler == NULL || path == NULL)
        return kn_fail_argument_null("lr_scheduler_load", scheduler == NULL ? "scheduler" : "path");
    kn_tensor_list list;
    KN_TRY(load(&list, scheduler->row->name, path));
    kn_status status = kn_lr_state_load(scheduler, "state", &list, path);
    kn_tensor_list_free(&list);
    return status;
}

kn_status kn_grad_scaler_save(const kn_grad_scaler *scaler, const char *path)
{
    if (scaler == NULL || path == NULL)
        return kn_fail_argument_null("grad_scaler_save", scaler == NULL ? "scaler" : "path");
    kn_tensor_list list = {0};
    return save(&list, kn_grad_scaler_state_list(scaler, &list), "GradScaler", path);
}

kn_status kn_grad_scaler_load(kn_grad_scaler *scaler, const char *path)
{
    if (scaler == NULL || path == NULL)
        return kn_fail_argument_null("grad_scaler_load", scaler == NULL ? "scaler" : "path");
    kn_tensor_list list;
    KN_TRY(load(&list, "GradScaler", path));
    kn_status status = kn_grad_scaler_state_load(scaler, &list, path);
    kn_tensor_list_free(&list);
    return status;
}

kn_status kn_averaged_model_save(const kn_averaged_model *model, const char *path)
{
    if (model == NULL || path == NULL)
        return kn_fail_argument_null("averaged_model_save", model == NULL ? "model" : "path");
    kn_tensor_list list = {0};
    return save(&list, kn_averaged_model_state_list(model, &list), "AveragedModel", path);
}

kn_status kn_averaged_model_load(kn_averaged_model *model, const char *path)
{
    if (model == NULL || path == NULL)
        return kn_fail_argument_null("averaged_model_load", model == NULL ? "model" : "path");
    kn_tensor_list list;
    KN_TRY(load(&list, "AveragedModel", path));
    kn_status status = kn_averaged_model_state_load(model, &list, path);
    kn_tensor_list_free(&list);
    return status;
}
