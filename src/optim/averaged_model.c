/* optim/averaged_model.c - averages of parameters, updated by the launches of optimizers (optim/launch.c). */
#include <koine/averaged_model.h>

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "optim/optim.h"
#include "optim/training_state.h"
#include "tensor/liveness.h"

struct kn_averaged_model {
    double decay;
    kn_tensor **parameters, **averages; /* one reference each */
    int count;
    int64_t updates;
};

static int scalars(const double *hyper, kn_optim_course *course, double *out)
{
    (void)course;
    out[0] = hyper[0];
    return 1;
}

static const kn_optim_algorithm average = {
    .name = "AveragedModel",
    .step = "AveragedModel.update_parameters",
    .hyper = (const kn_optim_hyper[]){{0}},
    .states = (const kn_optim_state[]){{0}},
    .source = "optim/average.cl",
    .kernel = "average",
    .flops = 3,
    .scalars = scalars,
};

kn_averaged_model_params kn_averaged_model_params_init(void)
{
    return (kn_averaged_model_params){KN_AVERAGED_MODEL_DEFAULTS};
}

static kn_status take(kn_averaged_model *model, kn_parameter_list list)
{
    model->parameters = kn_calloc((size_t)list.count, sizeof(kn_tensor *));
    model->averages = kn_calloc((size_t)list.count, sizeof(kn_tensor *));
    if (!model->parameters || !model->averages)
        return KN_ERR_MEMORY;
    for (int i = 0; i < list.count; i++) {
        kn_tensor *p = list.tensors[i];
        KN_TRY(kn_check_tensor("AveragedModel", "parameters", p));
        if (!kn_dtype_is_floating(p->dtype) || kn_device_is_host(p->storage->device)) {
            char text[KN_DESCRIBE];
            return kn_fail(KN_ERR_ARGUMENT, "AveragedModel: parameter %d is %s; it must be floating, on a device", i,
                           kn_tensor_describe(text, sizeof text, p));
        }
        model->parameters[i] = kn_retain(p);
        model->count = i + 1;
        KN_TRY(kn_tensor_cast(&model->averages[i], p, p->dtype, p->storage->device));
    }
    return KN_OK;
}

kn_averaged_model *kn_averaged_model_new_with(kn_parameter_list parameters, const kn_averaged_model_params *params)
{
    params = params ? params : &(kn_averaged_model_params){KN_AVERAGED_MODEL_DEFAULTS};
    if (!(params->decay >= 0 && params->decay < 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "AveragedModel: decay (%g) must be at least 0 and below 1", params->decay);
    if (parameters.count <= 0 || !parameters.tensors)
        return kn_fail_null(KN_ERR_ARGUMENT, "AveragedModel: there are no parameters to average");
    kn_averaged_model *model = kn_calloc(1, sizeof *model);
    if (model)
        model->decay = params->decay;
    if (model && take(model, parameters) == KN_OK)
        return model;
    kn_averaged_model_free(model);
    return kn_error_make_sticky();
}

void kn_averaged_model_free(kn_averaged_model *model)
{
    for (int i = 0; model && i < model->count; i++) {
        kn_release(model->parameters[i]);
        kn_release(model->averages[i]);
    }
    if (model) {
        kn_free(model->parameters);
        kn_free(model->averages);
    }
    kn_free(model);
}

static kn_status add_all(kn_averaged_model *model, kn_optim_batch *batch)
{
    const kn_optim_course course = {.step = 1};
    for (int i = 0; i < model->count; i++)
        KN_TRY(kn_optim_add(
            batch, &(kn_optim_slot){.parameter = model->averages[i], .gradient = model->parameters[i], .index = i},
            NULL, &course));
    return KN_OK;
}

kn_status kn_averaged_model_update(kn_averaged_model *model)
{
    if (!model)
        return kn_fail_argument_null("averaged_model_update", "model");
    const double weight = model->updates == 0 ? 1
                          : model->decay > 0  ? 1 - model->decay
                                              : 1 / (double)(model->updates + 1);
    kn_optim_batch batch = {.algorithm = &average, .hyper = &weight, .options = " -DOWN_STATES"};
    kn_status status = KN_OK;
    if (model->updates == 0)
        for (int i = 0; i < model->count && status == KN_OK; i++)
            status = kn_tensor_copy(model->averages[i], model->parameters[i]);
    else
        status = kn_optim_end(&batch, add_all(model, &batch), kn_optim_begin(average.step, model->parameters[0]));
    model->updates += status == KN_OK;
    return status;
}

int64_t kn_averaged_model_n_averaged(const kn_averaged_model *model) { return model ? model->updates : 0; }

kn_tensor *kn_averaged_model_parameter(const kn_averaged_model *model, int index)
{
    return model && index >= 0 && index < model->count ? model->averages[index] : NULL;
}

static kn_status swap_one(kn_tensor *a, kn_tensor *b)
{
    kn_tensor *copy = NULL;
    KN_TRY(kn_tensor_cast(&copy, a, a->dtype, a->storage->device));
    kn_status status = kn_tensor_copy(a, b);
    if (status == KN_OK)
        status = kn_tensor_copy(b, copy);
    kn_release(copy);
    kn_tensor_bump_version(a);
    kn_tensor_bump_version(b);
    return status;
}

kn_status kn_averaged_model_swap(kn_averaged_model *model)
{
    if (!model)
        return kn_fail_argument_null("averaged_model_swap", "model");
    for (int i = 0; i < model->count; i++)
        KN_TRY(swap_one(model->parameters[i], model->averages[i]));
    return KN_OK;
}

/* --- state -------------------------------------------------------------------------------------------------------- */

static const char *name_of(char name[32], int index)
{
    snprintf(name, 32, "module.%d", index);
    return name;
}

kn_status kn_averaged_model_state_list(const kn_averaged_model *model, kn_tensor_list *list)
{
    char name[32];
    kn_tensor *updates = NULL;
    KN_TRY(kn_tensor_new(&updates, KN_I64, 0, NULL, kn_device_host()));
    *(int64_t *)kn_data(updates) = model->updates;
    kn_status status = kn_tensor_list_append(list, "n_averaged", updates);
    kn_release(updates);
    for (int i = 0; i < model->count && status == KN_OK; i++)
        status = kn_tensor_list_append(list, name_of(name, i), model->averages[i]);
    return status;
}

kn_status kn_averaged_model_state_load(kn_averaged_model *model, const kn_tensor_list *list, const char *origin)
{
    char name[32];
    int64_t count;
    const kn_tensor *updates = kn_tensor_list_find(list, "n_averaged");
    if (!updates || kn_numel(updates) != 1)
        return kn_fail(KN_ERR_FORMAT, "%s holds no averages: no number \"n_averaged\"", origin);
    for (int i = 0; i < model->count; i++) {
        const kn_tensor *tensor = kn_tensor_list_find(list, name_of(name, i));
        if (!tensor || !kn_same_shape(tensor, model->averages[i]))
            return kn_fail(KN_ERR_FORMAT, "%s does not fit these averages: \"%s\" is missing or has another shape",
                           origin, name);
    }
    KN_TRY(kn_item_i64(updates, &count));
    for (int i = 0; i < model->count; i++)
        KN_TRY(kn_tensor_copy(model->averages[i], kn_tensor_list_find(list, name_of(name, i))));
    model->updates = count;
    return KN_OK;
}
