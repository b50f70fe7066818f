/* train/apply.c - applies the module and the loss to the fields of a batch. */
#include <koine/amp.h>
#include <koine/loss.h>

#include "base/dtype.h"
#include "data/loader.h"
#include "train/trainer.h"

/* --- before a pass --------------------------------------------------------------------------------------------- */

static kn_status find_field(const kn_loader *loader, const char *data, const char *name, const char *parameter)
{
    char there[256];
    const kn_dataset *dataset = loader->dataset;
    if (kn_dataset_find_field(dataset, name) >= 0)
        return KN_OK;
    return kn_fail(KN_ERR_ARGUMENT, "trainer: the %s has no field \"%s\"; %s: choose with .%s", data, name,
                   kn_describe_names(there, sizeof there, dataset->names, dataset->num_fields), parameter);
}

static kn_status check_classes(kn_dtype dtype)
{
    if (dtype == KN_I64 || dtype == KN_I32 || dtype == KN_U8)
        return KN_OK;
    return kn_fail(
        KN_ERR_DTYPE,
        "trainer: accuracy and other metrics of classes need integer classes, but the targets are %s; for such targets "
        "set .accuracy = false and choose others",
        kn_dtype_name(dtype));
}

/* Metrics, cross entropy and loss modules do; a user's loss function looks for what it needs itself. */
static bool needs_target(const kn_trainer *trainer, bool measure) { return measure || trainer->params.loss == NULL; }

kn_status kn_trainer_check_fields(const kn_trainer *trainer, const kn_loader *loader, bool measure, const char *data)
{
    const kn_trainer_params *params = &trainer->params;
    for (int i = 0; i < trainer->num_inputs; i++)
        KN_TRY(find_field(loader, data, params->inputs[i], "inputs"));
    return needs_target(trainer, measure) ? find_field(loader, data, params->target, "target") : KN_OK;
}

/* With a user's collate function the targets' dtype is known only from the first batch. */
kn_status kn_trainer_check_classes(const kn_trainer *trainer, const kn_loader *loader)
{
    const kn_dataset *dataset = loader->dataset;
    if (!kn_trainer_needs_classes(trainer) || loader->params.collate != NULL)
        return KN_OK;
    return check_classes(dataset->fields[kn_dataset_find_field(dataset, trainer->params.target)].dtype);
}

/* --- a batch --------------------------------------------------------------------------------------------------- */

/* The last input of a loss module is the target, the others are the first outputs. */
static kn_tensor *loss_of_module(kn_module *module, kn_tensor *const *outputs, kn_tensor *target)
{
    kn_tensor *inputs[KN_LOSS_INPUTS], *loss = NULL;
    const int count = kn_module_input_count(module); /* checked by kn_trainer_new */
    for (int i = 0; i < count; i++)
        inputs[i] = i + 1 < count ? outputs[i] : target;
    return kn_forward_many(module, inputs, count, &loss, 1) == KN_OK ? loss : NULL;
}

static kn_tensor *loss_of(const kn_trainer *trainer, kn_tensor *const *outputs, const kn_batch *batch,
                          kn_tensor *target)
{
    if (trainer->params.loss_module != NULL)
        return loss_of_module(trainer->params.loss_module, outputs, target);
    if (trainer->params.loss == NULL)
        return kn_cross_entropy(outputs[0], target);
    kn_tensor *loss = trainer->params.loss(outputs, batch, trainer->params.loss_user);
    if (loss == NULL && kn_error_status() == KN_OK)
        return kn_fail_null(KN_ERR_STATE, "trainer: the loss function returned NULL without an error");
    return loss;
}

/* The module, then the loss: in float32 at least, for the log. */
static kn_status run(kn_trainer *trainer, const kn_batch *batch, kn_applied_batch *applied)
{
    kn_tensor **inputs = trainer->tensors, **outputs = inputs + trainer->num_inputs;
    KN_TRY(kn_forward_many(trainer->params.module, inputs, trainer->num_inputs, outputs, trainer->num_outputs));
    applied->output = outputs[0];
    applied->loss = loss_of(trainer, outputs, batch, applied->target);
    if (applied->loss != NULL && kn_dtype_is_reduced(kn_dtype_of(applied->loss)))
        applied->loss = kn_to_dtype(applied->loss, KN_F32);
    return kn_status_of(applied->loss);
}

kn_status kn_trainer_apply(kn_trainer *trainer, const kn_batch *batch, bool measure, kn_applied_batch *applied)
{
    const kn_dtype precision = trainer->params.precision;
    kn_tensor **inputs = trainer->tensors;
    *applied = (kn_applied_batch){0};
    for (int i = 0; i < trainer->num_inputs; i++)
        if ((inputs[i] = kn_batch_field(batch, trainer->params.inputs[i])) == NULL)
            return kn_error_status();
    if (needs_target(trainer, measure) && (applied->target = kn_batch_field(batch, trainer->params.target)) == NULL)
        return kn_error_status();
    if (measure && kn_trainer_needs_classes(trainer))
        KN_TRY(check_classes(kn_dtype_of(applied->target)));
    const kn_dtype before = kn_autocast_enter(kn_dtype_is_reduced(precision) ? precision : kn_autocast_dtype());
    kn_status status = run(trainer, batch, applied);
    kn_autocast_leave(before);
    return status;
}
