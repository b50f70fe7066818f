/* train/save.c - what the trainer writes to its output directory.
 *
 * checkpoint.safetensors   the module's state in its best epoch, by PyTorch's names last.safetensors         everything
 * that the next epoch depends on: resume.c reads it history.csv, history.svg the figures of each epoch steps.csv,
 * steps.svg     the figures of logged steps; histograms.csv likewise
 *
 * Each file is written under a temporary name and renamed, so none is ever incomplete. */
#include <stdio.h>
#include <string.h>

#include <koine/random.h>

#include "base/files.h"
#include "io/checkpoint.h"
#include "nn/module.h"
#include "optim/lr_scheduler.h"
#include "optim/training_state.h"
#include "tensor/tensor.h"
#include "train/ranks.h"
#include "train/resume.h"

/* --- list of files --------------------------------------------------------------------------------------------- */

/* `name` outlives the trainer. */
static kn_status note_written(kn_trainer *trainer, const char *name, kn_status status)
{
    for (int i = 0; status == KN_OK && i < trainer->num_written; i++)
        if (strcmp(trainer->written[i], name) == 0)
            return status;
    if (status == KN_OK && trainer->num_written < KN_TRAINER_FILES)
        trainer->written[trainer->num_written++] = name;
    return status;
}

const char *kn_trainer_files(kn_trainer *trainer)
{
    if (trainer == NULL)
        return "";
    size_t used = 0;
    trainer->written_text[0] = '\0';
    for (int i = 0; i < trainer->num_written && used < sizeof trainer->written_text; i++)
        used += (size_t)snprintf(trainer->written_text + used, sizeof trainer->written_text - used, "%s%s",
                                 i > 0 ? ", " : "", trainer->written[i]);
    return trainer->written_text;
}

static bool writes(const kn_trainer *trainer) { return trainer->params.output != NULL && kn_ranks_leads(trainer); }

/* --- checkpoint.safetensors ------------------------------------------------------------------------------------ */

static kn_status describe_checkpoint(kn_trainer *trainer, kn_tensor_file *file)
{
    const kn_history *history = &trainer->history;
    char number[KN_NUMBER_TEXT];
    KN_TRY(kn_tensor_file_set_metadata(file, "format", "pt")); /* marks the layout for PyTorch's tools */
    KN_TRY(kn_tensor_file_set_metadata(file, "epoch", kn_format_number(number, trainer->epoch)));
    if (history->epochs == 0)
        return KN_OK; /* interrupted in the first epoch */
    double value = kn_history_value(history, history->epochs - 1, trainer->monitor_column);
    return kn_tensor_file_set_metadata(file, history->names[trainer->monitor_column], kn_format_number(number, value));
}

static kn_status save(kn_trainer *trainer, const char *name, kn_status (*fill)(kn_trainer *, kn_tensor_file *))
{
    char *path = kn_path_join(trainer->params.output, name);
    kn_tensor_file *file = kn_tensor_file_new();
    kn_status status = path == NULL || file == NULL ? KN_ERR_MEMORY : fill(trainer, file);
    if (status == KN_OK)
        status = kn_save_safetensors(path, file);
    kn_tensor_file_free(file);
    kn_free(path);
    return note_written(trainer, name, status);
}

static kn_status fill_checkpoint(kn_trainer *trainer, kn_tensor_file *file)
{
    KN_TRY(describe_checkpoint(trainer, file));
    return kn_checkpoint_put_module(file, "", kn_module_unwrapped(trainer->params.module));
}

kn_status kn_trainer_save_checkpoint(kn_trainer *trainer)
{
    return writes(trainer) ? save(trainer, "checkpoint.safetensors", fill_checkpoint) : KN_OK;
}

/* --- last.safetensors ------------------------------------------------------------------------------------------ */

static kn_status put_host(kn_tensor_file *file, const char *name, kn_dtype dtype, int ndim, const int64_t *shape,
                          const void *data)
{
    kn_tensor *tensor = NULL;
    KN_TRY(kn_tensor_new(&tensor, dtype, ndim, shape, kn_device_host()));
    if (kn_numel(tensor) > 0)
        memcpy(tensor->storage->host, data, (size_t)kn_numel(tensor) * kn_dtype_size(dtype));
    kn_status status = kn_tensor_file_put(file, name, tensor);
    kn_release(tensor);
    return status;
}

/* The generators' states on the other devices of a wrapped module, which dropout draws from. */
static kn_status put_replica_states(kn_trainer *trainer, kn_tensor_file *file)
{
    const kn_module *module = trainer->params.module;
    uint8_t states[KN_MAX_DEVICES][KN_RNG_STATE_SIZE];
    const int64_t table[] = {module->num_devices - 1, KN_RNG_STATE_SIZE};
    if (module->num_devices < 2)
        return KN_OK;
    for (int i = 1; i < module->num_devices; i++)
        KN_TRY(kn_get_rng_state(module->devices[i], states[i - 1]));
    return put_host(file, KN_REPLICA_STATES, KN_U8, 2, table, states);
}

static kn_status put_table(kn_tensor_file *file, const char *name, const kn_history *table)
{
    const int64_t shape[] = {table->epochs, table->columns};
    return put_host(file, name, KN_F64, 2, shape, table->values);
}

static kn_status put_course(kn_trainer *trainer, kn_tensor_file *file)
{
    const double course[KN_PROGRESS_NUMBERS] = {
        [KN_PROGRESS_EPOCH] = trainer->epoch,
        [KN_PROGRESS_BEST_EPOCH] = trainer->best_epoch,
        [KN_PROGRESS_BEST_VALUE] = trainer->best_value,
        [KN_PROGRESS_SINCE_BEST] = trainer->epochs_since_best,
        [KN_PROGRESS_GLOBAL_STEP] = (double)trainer->global_step,
    };
    const int64_t numbers = KN_PROGRESS_NUMBERS;
    KN_TRY(put_host(file, "trainer.course", KN_F64, 1, &numbers, course));
    KN_TRY(put_table(file, "trainer.history", &trainer->history));
    if (trainer->steps.columns > 0)
        KN_TRY(put_table(file, "trainer.steps", &trainer->steps));
    if (trainer->histograms.columns > 0)
        KN_TRY(put_table(file, "trainer.histograms", &trainer->histograms));
    uint8_t state[KN_RNG_STATE_SIZE];
    const int64_t bytes = KN_RNG_STATE_SIZE;
    KN_TRY(kn_get_rng_state(kn_trainer_device(trainer), state));
    KN_TRY(put_host(file, "trainer.rng", KN_U8, 1, &bytes, state));
    const int64_t of_ranks[] = {kn_ranks_count(trainer), KN_RNG_STATE_SIZE};
    if (trainer->group != NULL)
        KN_TRY(put_host(file, KN_RANK_STATES, KN_U8, 2, of_ranks, trainer->generators));
    return put_replica_states(trainer, file);
}

/* Frees the list; `status` is how making it went. */
static kn_status put_list(kn_tensor_file *file, const char *prefix, kn_tensor_list *list, kn_status status)
{
    if (status == KN_OK)
        status = kn_checkpoint_put_list(file, prefix, list);
    kn_tensor_list_free(list);
    return status;
}

/* Of the schedule, and of the scale of the gradients. */
static kn_status put_states(const kn_trainer *trainer, kn_tensor_file *file)
{
    kn_tensor_list list = {0};
    if (trainer->params.scheduler != NULL)
        KN_TRY(put_list(file, "scheduler.", &list, kn_lr_state_list(trainer->params.scheduler, "state", &list)));
    list = (kn_tensor_list){0};
    if (trainer->scaler != NULL)
        KN_TRY(put_list(file, "scaler.", &list, kn_grad_scaler_state_list(trainer->scaler, &list)));
    return KN_OK;
}

/* The columns of the history, joined by commas. */
static kn_status put_columns(const kn_trainer *trainer, kn_tensor_file *file)
{
    char *columns = kn_history_column_names(&trainer->history);
    kn_status status = columns != NULL ? kn_tensor_file_set_metadata(file, "columns", columns) : KN_ERR_MEMORY;
    kn_free(columns);
    return status;
}

static kn_status fill_last(kn_trainer *trainer, kn_tensor_file *file)
{
    KN_TRY(kn_tensor_file_set_metadata(file, "koine", KN_LAST_FORMAT));
    KN_TRY(kn_tensor_file_set_metadata(file, "monitor", trainer->params.monitor));
    KN_TRY(kn_tensor_file_set_metadata(file, "mode", trainer->params.mode == KN_MONITOR_MAX ? "max" : "min"));
    KN_TRY(put_columns(trainer, file));
    KN_TRY(put_course(trainer, file));
    KN_TRY(kn_checkpoint_put_module(file, "module.", kn_module_unwrapped(trainer->params.module)));
    KN_TRY(kn_checkpoint_put_optim(file, "optim.", trainer->params.optim));
    if (trainer->best_epoch > 0)
        KN_TRY(kn_checkpoint_put_list(file, "best.", &trainer->best));
    KN_TRY(kn_trainer_put_settings(trainer, file));
    KN_TRY(put_states(trainer, file));
    return kn_trainer_put_callbacks(trainer, file);
}

static kn_status save_history(kn_trainer *trainer, const kn_history *table, const char *name,
                              kn_status (*write)(const kn_history *table, const char *path))
{
    char *path = kn_path_join(trainer->params.output, name);
    if (path == NULL)
        return KN_ERR_MEMORY;
    kn_status status = write(table, path);
    kn_free(path);
    return note_written(trainer, name, status);
}

static kn_status save_table(kn_trainer *trainer, const kn_history *table, const char *name)
{
    return table->columns > 0 ? save_history(trainer, table, name, kn_history_save_csv) : KN_OK;
}

kn_status kn_trainer_save_tables(kn_trainer *trainer)
{
    if (!writes(trainer))
        return KN_OK;
    KN_TRY(save_table(trainer, &trainer->history, "history.csv"));
    KN_TRY(save_table(trainer, &trainer->steps, "steps.csv"));
    return save_table(trainer, &trainer->histograms, "histograms.csv");
}

kn_status kn_trainer_save_last(kn_trainer *trainer)
{
    if (trainer->params.output == NULL)
        return KN_OK;
    KN_TRY(kn_ranks_gather_generators(trainer));
    KN_TRY(kn_optim_zero_consolidate(trainer->params.optim, 0));
    if (!writes(trainer))
        return KN_OK;
    KN_TRY(save(trainer, KN_LAST_FILE, fill_last));
    return kn_trainer_save_tables(trainer);
}

/* --- the directory, the plot ----------------------------------------------------------------------------------- */

kn_status kn_trainer_open_output(kn_trainer *trainer)
{
    const char *output = trainer->params.output;
    if (!writes(trainer))
        return KN_OK;
    KN_TRY(kn_make_directories(output));
    if (kn_directory_lock(output, &trainer->lock))
        return KN_OK;
    return kn_fail(KN_ERR_STATE,
                   "trainer: another training run is writing to '%s': wait until it ends, or use another output",
                   output);
}

void kn_trainer_close_output(kn_trainer *trainer) { kn_directory_unlock(&trainer->lock); }

static kn_status save_plot(kn_trainer *trainer, const kn_history *table, const char *name)
{
    return table->epochs > 0 ? save_history(trainer, table, name, kn_history_save_plot) : KN_OK;
}

kn_status kn_trainer_save_plot(kn_trainer *trainer)
{
    if (!writes(trainer))
        return KN_OK;
    kn_status status = save_plot(trainer, &trainer->history, "history.svg");
    if (status == KN_OK)
        status = save_plot(trainer, &trainer->steps, "steps.svg");
    if (status == KN_OK)
        return KN_OK;
    /* A missing plot does not fail the training. */
    kn_progress_note(&trainer->progress, "no plot was drawn: %s", kn_error_message());
    kn_error_clear();
    return KN_OK;
}
