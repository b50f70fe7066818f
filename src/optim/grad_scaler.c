/* optim/grad_scaler.c - torch.amp.GradScaler. Its state is floats on the device: scale, growth tracker, and whether
 * gradients of each optimizer, in the order of the calls, were not finite. */
#include <koine/fused_optim.h>
#include <koine/grad_scaler.h>

#include <koine/pointwise.h>

#include "base/error.h"
#include "base/memory.h"
#include "optim/gradients.h"
#include "optim/optim.h"
#include "optim/training_state.h"
#include "tensor/liveness.h"

#define MAX_OPTIMIZERS 16 /* must match cl/optim/scaler.cl */
#define FOUND 2           /* where the optimizers' marks begin */
#define STATE_SIZE (FOUND + MAX_OPTIMIZERS)

/* An optimizer whose gradients have been unscaled since the last update. */
typedef struct scaled_optim {
    const kn_optim *optim;
    bool has_stepped;
} scaled_optim;

struct kn_grad_scaler {
    kn_grad_scaler_params params;
    double scale, tracker; /* before there is a device */
    kn_tensor *state;      /* NULL: not yet */
    scaled_optim unscaled[MAX_OPTIMIZERS];
    int num_unscaled;
};

kn_grad_scaler_params kn_grad_scaler_params_init(void) { return (kn_grad_scaler_params){KN_GRAD_SCALER_DEFAULTS}; }

kn_grad_scaler *kn_grad_scaler_new_with(const kn_grad_scaler_params *params)
{
    params = params ? params : &(kn_grad_scaler_params){KN_GRAD_SCALER_DEFAULTS};
    if (!(params->growth_factor > 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "GradScaler: growth_factor (%g) must be above 1", params->growth_factor);
    if (!(params->backoff_factor > 0 && params->backoff_factor < 1))
        return kn_fail_null(KN_ERR_ARGUMENT, "GradScaler: backoff_factor (%g) must be above 0 and below 1",
                            params->backoff_factor);
    if (!(params->init_scale > 0) || params->growth_interval < 1)
        return kn_fail_null(KN_ERR_ARGUMENT,
                            "GradScaler: init_scale (%g) must be above 0, growth_interval (%d) 1 or more",
                            params->init_scale, params->growth_interval);
    kn_grad_scaler *scaler = kn_calloc(1, sizeof *scaler);
    if (scaler == NULL)
        return kn_error_make_sticky();
    *scaler = (kn_grad_scaler){.params = *params, .scale = params->init_scale};
    return scaler;
}

void kn_grad_scaler_free(kn_grad_scaler *scaler)
{
    if (scaler != NULL)
        kn_release(scaler->state);
    kn_free(scaler);
}

static kn_status prepare(kn_grad_scaler *scaler, const char *function, kn_device *device)
{
    const int64_t size = STATE_SIZE;
    const float values[STATE_SIZE] = {(float)scaler->scale, (float)scaler->tracker};
    if (scaler->state != NULL && scaler->state->storage->device != device)
        return kn_fail(KN_ERR_DEVICE, "%s: the scaler is on %s, not on %s", function,
                       kn_device_string(scaler->state->storage->device), kn_device_string(device));
    if (scaler->state != NULL)
        return KN_OK;
    KN_TRY(kn_tensor_new(&scaler->state, KN_F32, 1, &size, device));
    return kn_write(scaler->state, values, sizeof values);
}

/* An owned view of one number. */
static kn_status number(const kn_grad_scaler *scaler, int index, kn_tensor **view)
{
    return kn_tensor_view(view, scaler->state, 0, NULL, NULL, scaler->state->offset + index);
}

kn_tensor *kn_grad_scaler_scale(kn_grad_scaler *scaler, kn_tensor *loss)
{
    if (scaler == NULL)
        return kn_fail_null(KN_ERR_ARGUMENT, "grad_scaler_scale: scaler is NULL");
    if (kn_check_tensor("grad_scaler_scale", "loss", loss) != KN_OK)
        return kn_error_make_sticky();
    if (scaler->params.disabled)
        return loss;
    kn_tensor *view = NULL, *scale = NULL;
    const int scope = kn_scope_begin();
    kn_tensor *scaled = NULL;
    if (scope && prepare(scaler, "grad_scaler_scale", loss->storage->device) == KN_OK &&
        number(scaler, 0, &view) == KN_OK &&
        kn_tensor_cast(&scale, view, loss->dtype, loss->storage->device) ==
            KN_OK) /* a copy: updates change the scale */
        scaled = kn_mul(loss, kn_scope_adopt(scale));
    else
        scaled = kn_error_make_sticky();
    kn_release(view);
    return kn_scope_return(scope, scaled);
}

/* Its index, -1 if its gradients have not been unscaled. */
static int find(const kn_grad_scaler *scaler, const kn_optim *optim)
{
    for (int i = 0; i < scaler->num_unscaled; i++)
        if (scaler->unscaled[i].optim == optim)
            return i;
    return -1;
}

static kn_status check(const char *function, const kn_grad_scaler *scaler, const kn_optim *optim)
{
    if (scaler == NULL || optim == NULL)
        return kn_fail_argument_null(function, scaler == NULL ? "scaler" : "optim");
    return KN_OK;
}

static kn_status unscale(const kn_many *many, const char *function, const kn_tensor *scale, const kn_tensor *found_inf,
                         bool is_inverse)
{
    const kn_arg args[] = {kn_arg_tensor(scale), kn_arg_tensor(found_inf), kn_arg_i32(is_inverse)};
    return kn_many_change(many, "unscale", function, args, 3, NULL);
}

kn_status kn_grad_scaler_unscale_(kn_grad_scaler *scaler, kn_optim *optim)
{
    KN_TRY(check("grad_scaler_unscale_", scaler, optim));
    if (scaler->params.disabled)
        return KN_OK;
    const int found = find(scaler, optim);
    if (found >= 0)
        return kn_fail(KN_ERR_STATE,
                       scaler->unscaled[found].has_stepped
                           ? "grad_scaler_unscale_: is called after this optimizer's step"
                           : "grad_scaler_unscale_: has already been called for this optimizer since the last update");
    if (scaler->num_unscaled == MAX_OPTIMIZERS)
        return kn_fail(KN_ERR_STATE, "grad_scaler_unscale_: more than %d optimizers without an update", MAX_OPTIMIZERS);
    kn_many many;
    kn_status status = kn_many_gradients(&many, "grad_scaler_unscale_", optim->parameters, optim->count);
    if (status == KN_OK && many.count > 0)
        status = prepare(scaler, "grad_scaler_unscale_", many.device);
    kn_tensor *inf = NULL;
    if (status == KN_OK && many.count > 0)
        status = number(scaler, FOUND + scaler->num_unscaled, &inf);
    if (status == KN_OK && many.count > 0)
        status = unscale(&many, "grad_scaler_unscale_", scaler->state, inf, false);
    kn_release(inf);
    kn_many_free(&many);
    if (status == KN_OK)
        scaler->unscaled[scaler->num_unscaled++] = (scaled_optim){optim, false};
    return status;
}

static kn_status check_number(const char *name, const kn_tensor *number, const kn_device *device)
{
    char text[KN_DESCRIBE];
    KN_TRY(kn_check_tensor("fused_unscale", name, number));
    if (number->dtype == KN_F32 && kn_numel(number) == 1 && number->storage->device == device)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "fused_unscale: %s is %s: it must be one float32 element on %s", name,
                   kn_tensor_describe(text, sizeof text, number), kn_device_string(device));
}

kn_status kn_fused_unscale(kn_tensor *const *gradients, int count, kn_tensor *inv_scale, kn_tensor *found_inf)
{
    kn_many many;
    kn_status status = kn_many_tensors(&many, "fused_unscale", gradients, count);
    if (status == KN_OK && many.count > 0)
        status = check_number("inv_scale", inv_scale, many.device);
    if (status == KN_OK && many.count > 0)
        status = check_number("found_inf", found_inf, many.device);
    if (status == KN_OK && many.count > 0) {
        status = unscale(&many, "fused_unscale", inv_scale, found_inf, true);
        kn_tensor_bump_version(found_inf);
    }
    kn_many_free(&many);
    return status;
}

/* Optimizers whose scalars need the number of the step on the host wait. */
static kn_status step_checked(kn_grad_scaler *scaler, int index, kn_optim *optim)
{
    kn_tensor *found = NULL;
    double value = 0;
    KN_TRY(number(scaler, FOUND + index, &found));
    const kn_optim_algorithm *algorithm = optim->algorithm;
    kn_status status = optim->shard ? optim->shard->agree(optim, found) : KN_OK;
    if (status != KN_OK) {
        kn_release(found);
        return status;
    }
    if (algorithm->counts_on_device || algorithm->is_same_each_step) {
        status = kn_optim_step_scaled(optim, NULL, found);
    } else {
        status = kn_item(found, &value);
        if (status == KN_OK && value == 0)
            status = kn_optim_step(optim);
    }
    kn_release(found);
    return status;
}

kn_status kn_grad_scaler_step(kn_grad_scaler *scaler, kn_optim *optim)
{
    KN_TRY(check("grad_scaler_step", scaler, optim));
    if (scaler->params.disabled)
        return kn_optim_step(optim);
    if (find(scaler, optim) < 0)
        KN_TRY(kn_grad_scaler_unscale_(scaler, optim));
    const int index = find(scaler, optim);
    if (scaler->unscaled[index].has_stepped)
        return kn_fail(KN_ERR_STATE,
                       "grad_scaler_step: has already been called for this optimizer since the last update");
    KN_TRY(scaler->state != NULL ? step_checked(scaler, index, optim) : kn_optim_step(optim));
    scaler->unscaled[index].has_stepped = true;
    return KN_OK;
}

kn_status kn_grad_scaler_update(kn_grad_scaler *scaler)
{
    if (scaler == NULL)
        return kn_fail_argument_null("grad_scaler_update", "scaler");
    scaler->num_unscaled = 0;
    if (scaler->params.disabled || scaler->state == NULL)
        return KN_OK;
    kn_tensor_bump_version(scaler->state);
    return kn_run(kn_tensor_stream(scaler->state), .source = "optim/scaler.cl", .options = "-DT=float",
                  .kernel = "update_scale", .dims = 1, .global = {1},
                  KN_ARGS(kn_arg_tensor(scaler->state), kn_arg_f32(scaler->params.growth_factor),
                          kn_arg_f32(scaler->params.backoff_factor), kn_arg_i32(scaler->params.growth_interval)));
}

/* --- state -------------------------------------------------------------------------------------------------------- */

static kn_status read_state(const kn_grad_scaler *scaler, double *scale, double *tracker)
{
    float values[STATE_SIZE] = {(float)scaler->scale, (float)scaler->tracker};
    if (scaler->state != NULL)
        KN_TRY(kn_read(scaler->state, values, sizeof values));
    *scale = values[0];
    *tracker = values[1];
    return KN_OK;
}

kn_status kn_grad_scaler_get_scale(const kn_grad_scaler *scaler, double *scale)
{
    double tracker;
    if (scaler == NULL || scale == NULL)
        return kn_fail_argument_null("grad_scaler_get_scale", scaler == NULL ? "scaler" : "scale");
    if (scaler->params.disabled) {
        *scale = 1;
        return KN_OK;
    }
    return read_state(scaler, scale, &tracker);
}

static const char *const names[] = {"scale", "_growth_tracker"};

kn_status kn_grad_scaler_state_list(const kn_grad_scaler *scaler, kn_tensor_list *list)
{
    double values[2];
    KN_TRY(read_state(scaler, &values[0], &values[1]));
    kn_status status = KN_OK;
    for (int i = 0; i < 2 && status == KN_OK; i++) {
        kn_tensor *tensor = NULL;
        status = kn_tensor_new(&tensor, KN_F64, 0, NULL, kn_device_host());
        if (status == KN_OK)
            status = kn_tensor_fill(tensor, values[i]);
        if (status == KN_OK)
            status = kn_tensor_list_append(list, names[i], tensor);
        kn_release(tensor);
    }
    return status;
}

kn_status kn_grad_scaler_state_load(kn_grad_scaler *scaler, const kn_tensor_list *list, const char *origin)
{
    double values[2];
    for (int i = 0; i < 2; i++) {
        const kn_tensor *tensor = kn_tensor_list_find(list, names[i]);
        if (tensor == NULL || kn_numel(tensor) != 1)
            return kn_fail(KN_ERR_FORMAT, "%s holds no state of a GradScaler: no number \"%s\"", origin, names[i]);
        KN_TRY(kn_item(tensor, &values[i]));
    }
    scaler->scale = values[0];
    scaler->tracker = values[1];
    kn_release(scaler->state); /* made again with the next loss */
    scaler->state = NULL;
    return KN_OK;
}
