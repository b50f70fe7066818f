/* train/best.c - which epoch was the best, and the module's state in it. */
#include <math.h>

#include "nn/state_dict.h"
#include "tensor/tensor.h"
#include "train/trainer.h"

/* New copies of all of the module's state. */
static kn_status clone_state(const kn_tensor_list *own, kn_tensor_list *copies)
{
    *copies = (kn_tensor_list){0};
    kn_status status = KN_OK;
    for (int i = 0; i < own->count && status == KN_OK; i++) {
        kn_tensor *copy = NULL, *tensor = own->tensors[i];
        status = kn_tensor_cast(&copy, tensor, tensor->dtype, tensor->storage->device);
        if (status == KN_OK)
            status = kn_tensor_list_append(copies, own->names[i], copy);
        kn_release(copy);
    }
    if (status != KN_OK)
        kn_tensor_list_free(copies);
    return status;
}

/* The old copies are kept until the new ones exist, so a failure loses nothing. */
kn_status kn_trainer_keep_best(kn_trainer *trainer)
{
    kn_tensor_list own, copies;
    KN_TRY(kn_state_dict_list(kn_module_unwrapped(trainer->params.module), &own));
    kn_status status = clone_state(&own, &copies);
    kn_tensor_list_free(&own);
    KN_TRY(status);
    kn_tensor_list_free(&trainer->best);
    trainer->best = copies;
    return KN_OK;
}

kn_status kn_trainer_restore_best(kn_trainer *trainer)
{
    if (trainer->best.count == 0)
        return KN_OK;
    return kn_state_dict_load(kn_module_unwrapped(trainer->params.module), &trainer->best, true, "", NULL,
                              "the best epoch's state");
}

static bool improves(const kn_trainer *trainer, double value)
{
    if (isnan(value))
        return false;
    if (trainer->best_epoch == 0)
        return true;
    double delta = trainer->params.min_delta;
    return trainer->params.mode == KN_MONITOR_MAX ? value > trainer->best_value + delta
                                                  : value < trainer->best_value - delta;
}

kn_status kn_trainer_note_epoch(kn_trainer *trainer, bool *is_best)
{
    double value = kn_history_value(&trainer->history, trainer->history.epochs - 1, trainer->monitor_column);
    *is_best = improves(trainer, value);
    if (!*is_best) {
        trainer->epochs_since_best++;
        return KN_OK;
    }
    KN_TRY(kn_trainer_keep_best(trainer));
    trainer->best_epoch = trainer->history.best_epoch = trainer->epoch;
    trainer->best_value = value;
    trainer->epochs_since_best = 0;
    return kn_trainer_save_checkpoint(trainer);
}
