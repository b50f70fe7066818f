/* train/resume.c - resuming from last.safetensors, bit for bit like an uninterrupted run. */
#include "train/resume.h"

#include <math.h>
#include <string.h>

#include <koine/random.h>

#include "base/files.h"
#include "base/integer.h"
#include "base/log.h"
#include "io/checkpoint.h"
#include "nn/module.h"
#include "optim/lr_scheduler.h"
#include "optim/training_state.h"
#include "train/ranks.h"

/* Gets a tensor from the file, which must have exactly this dtype and shape. */
static kn_status fetch(const kn_tensor_file *file, const char *path, const char *name, kn_dtype dtype, int ndim,
                       const int64_t *shape, kn_tensor **found)
{
    kn_tensor *tensor = kn_tensor_file_get(file, name);
    bool fits = tensor != NULL && kn_dtype_of(tensor) == dtype && kn_ndim(tensor) == ndim;
    for (int d = 0; fits && d < ndim; d++)
        fits = shape[d] < 0 || kn_size(tensor, d) == shape[d];
    if (!fits)
        return kn_fail(KN_ERR_FORMAT, "cannot resume from %s: \"%s\" is missing or has another shape", path, name);
    *found = tensor;
    return KN_OK;
}

/* Files of earlier versions do not name the columns: the number is checked later. */
static kn_status check_columns(const kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    const char *saved = kn_tensor_file_metadata(file, "columns");
    char *own = kn_history_column_names(&trainer->history);
    kn_status status = own != NULL ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK && saved != NULL && strcmp(saved, own) != 0)
        status =
            kn_fail(KN_ERR_FORMAT, "cannot resume from %s: its figures are %s, those of this run %s", path, saved, own);
    kn_free(own);
    return status;
}

static kn_status check_metadata(const kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    const char *format = kn_tensor_file_metadata(file, "koine");
    if (format == NULL || strcmp(format, KN_LAST_FORMAT) != 0)
        return kn_fail(KN_ERR_FORMAT, "cannot resume from %s: it is \"%s\", not \"%s\"", path,
                       format != NULL ? format : "not a training state", KN_LAST_FORMAT);
    const char *monitor = kn_tensor_file_metadata(file, "monitor"), *mode = kn_tensor_file_metadata(file, "mode");
    const char *own = trainer->params.mode == KN_MONITOR_MAX ? "max" : "min";
    if (monitor == NULL || mode == NULL || strcmp(monitor, trainer->params.monitor) != 0 || strcmp(mode, own) != 0)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s was monitoring %s (%s); resuming with %s (%s) would compare different figures", path,
                       monitor != NULL ? monitor : "nothing", mode != NULL ? mode : "?", trainer->params.monitor, own);
    return check_columns(trainer, file, path);
}

/* The progress of the fit as stored in the file, validated before use. */
typedef struct fit_course {
    double numbers[KN_PROGRESS_NUMBERS];
    const double *rows;
    int epochs;
    uint8_t rng[KN_RNG_STATE_SIZE];
} fit_course;

static kn_status read_course(const kn_trainer *trainer, const kn_tensor_file *file, const char *path, fit_course *into)
{
    const int64_t numbers = KN_PROGRESS_NUMBERS, bytes = KN_RNG_STATE_SIZE;
    const int64_t table[] = {-1, trainer->history.columns};
    kn_tensor *tensor;
    KN_TRY(fetch(file, path, "trainer.course", KN_F64, 1, &numbers, &tensor));
    memcpy(into->numbers, kn_data(tensor), sizeof into->numbers);
    KN_TRY(fetch(file, path, "trainer.rng", KN_U8, 1, &bytes, &tensor));
    memcpy(into->rng, kn_data(tensor), sizeof into->rng);
    KN_TRY(fetch(file, path, "trainer.history", KN_F64, 2, table, &tensor));
    into->rows = kn_data(tensor);
    into->epochs = (int)kn_size(tensor, 0);
    double epoch = into->numbers[KN_PROGRESS_EPOCH], best = into->numbers[KN_PROGRESS_BEST_EPOCH];
    double since = into->numbers[KN_PROGRESS_SINCE_BEST], steps = into->numbers[KN_PROGRESS_GLOBAL_STEP];
    bool whole = floor(best) == best && floor(since) == since && floor(steps) == steps && kn_is_count(steps);
    if (epoch != (double)into->epochs || !whole || !(best >= 0 && best <= epoch) || !(since >= 0 && since <= epoch))
        return kn_fail(
            KN_ERR_FORMAT,
            "cannot resume from %s: its epoch numbers are inconsistent; remove the file to start from the beginning",
            path);
    return KN_OK;
}

/* Loads the best epoch's state through the module, then the last epoch's. */
static kn_status load_states(kn_trainer *trainer, const kn_tensor_file *file, const char *path, bool has_best)
{
    KN_TRY(kn_checkpoint_get_optim(file, "optim.", trainer->params.optim, path));
    if (has_best) {
        KN_TRY(kn_checkpoint_get_module(file, "best.", kn_module_unwrapped(trainer->params.module), path));
        KN_TRY(kn_trainer_keep_best(trainer));
    }
    return kn_checkpoint_get_module(file, "module.", kn_module_unwrapped(trainer->params.module), path);
}

/* For the other devices of a wrapped module, as far as both runs have them. */
static kn_status restore_replica_states(const kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    const kn_module *module = trainer->params.module;
    const int64_t table[] = {-1, KN_RNG_STATE_SIZE};
    kn_tensor *tensor;
    if (module->num_devices < 2 || kn_tensor_file_get(file, KN_REPLICA_STATES) == NULL)
        return KN_OK;
    KN_TRY(fetch(file, path, KN_REPLICA_STATES, KN_U8, 2, table, &tensor));
    const uint8_t *states = kn_data(tensor);
    for (int64_t i = 1; i < module->num_devices && i <= kn_size(tensor, 0); i++)
        KN_TRY(kn_set_rng_state(module->devices[i], states + (i - 1) * KN_RNG_STATE_SIZE));
    return KN_OK;
}

/* The rows of a table of steps, if the file has one with this run's columns; otherwise the table starts empty. */
static kn_status restore_rows(kn_history *table, const kn_tensor_file *file, const char *name)
{
    kn_tensor *rows = kn_tensor_file_get(file, name);
    if (rows == NULL || table->columns == 0 || kn_dtype_of(rows) != KN_F64 || kn_ndim(rows) != 2 ||
        kn_size(rows, 1) != table->columns)
        return KN_OK;
    const double *values = kn_data(rows);
    for (int64_t r = 0; r < kn_size(rows, 0); r++)
        KN_TRY(kn_history_append(table, values + r * table->columns));
    return KN_OK;
}

/* After the optimizer, whose learning rates are its own state. */
static kn_status restore_schedule(kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    if (trainer->params.scheduler == NULL)
        return KN_OK;
    kn_tensor_list list;
    KN_TRY(kn_checkpoint_get_list(file, "scheduler.", &list));
    kn_status status = KN_OK;
    if (list.count > 0)
        status = kn_lr_state_load(trainer->params.scheduler, "state", &list, path);
    else if (kn_ranks_leads(trainer))
        kn_log_message(KN_LOG_WARNING, "%s has no state of a schedule: it starts from its beginning", path);
    kn_tensor_list_free(&list);
    return status;
}

/* A run with another precision, which a warning tells, has none. */
static kn_status restore_scale(kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    if (trainer->scaler == NULL)
        return KN_OK;
    kn_tensor_list list;
    KN_TRY(kn_checkpoint_get_list(file, "scaler.", &list));
    kn_status status = list.count > 0 ? kn_grad_scaler_state_load(trainer->scaler, &list, path) : KN_OK;
    kn_tensor_list_free(&list);
    return status;
}

/* This rank's generator: with more ranks than the file has, the others keep theirs, which a warning tells. */
static kn_status restore_generator(kn_trainer *trainer, const kn_tensor_file *file, const char *path,
                                   const uint8_t *first)
{
    const int64_t table[] = {-1, KN_RNG_STATE_SIZE};
    const int rank = trainer->group != NULL ? kn_group_rank(trainer->group) : 0;
    kn_tensor *tensor;
    if (rank == 0)
        return kn_set_rng_state(kn_trainer_device(trainer), first);
    if (kn_tensor_file_get(file, KN_RANK_STATES) == NULL)
        return KN_OK;
    KN_TRY(fetch(file, path, KN_RANK_STATES, KN_U8, 2, table, &tensor));
    const uint8_t *states = kn_data(tensor);
    return rank < kn_size(tensor, 0)
               ? kn_set_rng_state(kn_trainer_device(trainer), states + (size_t)rank * KN_RNG_STATE_SIZE)
               : KN_OK;
}

static kn_status take_over(kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    fit_course course;
    KN_TRY(check_metadata(trainer, file, path));
    KN_TRY(read_course(trainer, file, path, &course));
    int best_epoch = (int)course.numbers[KN_PROGRESS_BEST_EPOCH];
    KN_TRY(load_states(trainer, file, path, best_epoch > 0));
    for (int e = 0; e < course.epochs; e++)
        KN_TRY(kn_history_append(&trainer->history, course.rows + (size_t)e * (size_t)trainer->history.columns));
    KN_TRY(restore_rows(&trainer->steps, file, "trainer.steps"));
    KN_TRY(restore_rows(&trainer->histograms, file, "trainer.histograms"));
    trainer->epoch = course.epochs;
    trainer->global_step = (int64_t)course.numbers[KN_PROGRESS_GLOBAL_STEP];
    trainer->best_epoch = trainer->history.best_epoch = best_epoch;
    trainer->best_value = course.numbers[KN_PROGRESS_BEST_VALUE];
    trainer->epochs_since_best = (int)course.numbers[KN_PROGRESS_SINCE_BEST];
    KN_TRY(restore_generator(trainer, file, path, course.rng));
    KN_TRY(restore_replica_states(trainer, file, path));
    KN_TRY(kn_trainer_compare_settings(trainer, file, path));
    KN_TRY(restore_schedule(trainer, file, path));
    KN_TRY(restore_scale(trainer, file, path));
    return kn_trainer_get_callbacks(trainer, file, path); /* last: callbacks may read everything else */
}

/* A name that exists but cannot be opened, such as a dangling link, is an error: starting from scratch would overwrite
 * it. */
static kn_status resume_from(kn_trainer *trainer, const char *path, bool *resumed)
{
    kn_tensor_file *file = NULL;
    bool is_there;
    kn_status status = kn_file_look_up(path, &is_there);
    if (status == KN_OK && is_there)
        status = kn_status_of(file = kn_load_safetensors(path));
    if (status == KN_OK && is_there)
        status = take_over(trainer, file, path);
    kn_tensor_file_free(file);
    *resumed = status == KN_OK && is_there;
    return status;
}

kn_status kn_trainer_resume(kn_trainer *trainer, bool *resumed)
{
    *resumed = false;
    if (!trainer->params.resume)
        return KN_OK;
    char *path = kn_path_join(trainer->params.output, KN_LAST_FILE);
    kn_status status = path != NULL ? resume_from(trainer, path, resumed) : KN_ERR_MEMORY;
    kn_free(path);
    return status;
}
