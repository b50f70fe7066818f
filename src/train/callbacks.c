/* train/callbacks.c - the trainer's callbacks: adding and calling them, and their states in last.safetensors.
 *
 * The state of a callback named N is the tensors "callback.N.X" and metadata: "callback.N", which marks its presence,
 * and "callback.N.KEY". Names contain no dot, so that no name is a prefix of another's keys. */
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/checkpoint.h"
#include "io/tensor_file.h"
#include "train/ranks.h"

#define PREFIX "callback."

/* --- adding ---------------------------------------------------------------------------------------------------- */

static bool has_state(const kn_callback *callback) { return callback->save != NULL; }

static const kn_callback *find(const kn_trainer *trainer, const char *name)
{
    for (int i = 0; i < trainer->num_callbacks; i++) {
        const kn_callback *callback = &trainer->callbacks[i];
        if (has_state(callback) && strcmp(callback->name, name) == 0)
            return callback;
    }
    return NULL;
}

static kn_status check(const kn_trainer *trainer, const kn_callback *callback)
{
    if ((callback->save == NULL) != (callback->load == NULL))
        return kn_fail(KN_ERR_ARGUMENT, "trainer: a callback with %s also needs %s", callback->save ? "save" : "load",
                       callback->save ? "load" : "save");
    if (!has_state(callback))
        return KN_OK;
    size_t bad;
    const char *name = callback->name;
    if (name == NULL || name[0] == '\0' || strchr(name, '.') != NULL || !kn_is_utf8(name, strlen(name), &bad))
        return kn_fail(KN_ERR_ARGUMENT, "trainer: a callback with a state needs a unique name, in UTF-8 and without a "
                                        "dot, by which resuming finds its state");
    if (find(trainer, name) != NULL)
        return kn_fail(KN_ERR_ARGUMENT, "trainer: another callback already has a state named \"%s\"", name);
    return KN_OK;
}

kn_status kn_trainer_add_callback(kn_trainer *trainer, const kn_callback *callback)
{
    if (trainer == NULL || callback == NULL)
        return kn_fail_argument_null("trainer_add_callback", trainer == NULL ? "trainer" : "callback");
    KN_TRY(check(trainer, callback));
    KN_TRY(KN_GROW(trainer->callbacks, trainer->num_callbacks, trainer->callback_capacity));
    char *name = callback->name != NULL ? kn_strdup(callback->name) : NULL;
    if (callback->name != NULL && name == NULL)
        return KN_ERR_MEMORY;
    trainer->callbacks[trainer->num_callbacks] = *callback;
    trainer->callbacks[trainer->num_callbacks++].name = name;
    return KN_OK;
}

void kn_trainer_free_callbacks(kn_trainer *trainer)
{
    for (int i = 0; i < trainer->num_callbacks; i++)
        kn_free((char *)trainer->callbacks[i].name);
    kn_free(trainer->callbacks);
}

/* --- calling --------------------------------------------------------------------------------------------------- */

static kn_status call_one(kn_trainer *trainer, const kn_callback *c, kn_moment moment, int epoch, int64_t step,
                          kn_tensor *loss)
{
    switch (moment) {
    case KN_FIT_START:
        return c->on_fit_start != NULL ? c->on_fit_start(trainer, c->user) : KN_OK;
    case KN_EPOCH_START:
        return c->on_epoch_start != NULL ? c->on_epoch_start(trainer, epoch, c->user) : KN_OK;
    case KN_BEFORE_OPTIMIZER_STEP:
        return c->on_before_optimizer_step != NULL ? c->on_before_optimizer_step(trainer, epoch, step, loss, c->user)
                                                   : KN_OK;
    case KN_STEP_END:
        return c->on_step_end != NULL ? c->on_step_end(trainer, epoch, step, loss, c->user) : KN_OK;
    case KN_EPOCH_END:
        return c->on_epoch_end != NULL ? c->on_epoch_end(trainer, epoch, &trainer->history, c->user) : KN_OK;
    case KN_FIT_END:
        return c->on_fit_end != NULL ? c->on_fit_end(trainer, c->user) : KN_OK;
    }
    return KN_OK;
}

/* `status`, with a default message if the callback left none. */
static kn_status tell(kn_status status, int index, const char *function)
{
    if (status != KN_OK && kn_error_status() != status)
        kn_fail(status, "trainer: callback %d ended the training in %s with %s", index, function,
                kn_status_name(status));
    return status;
}

kn_status kn_trainer_call(kn_trainer *trainer, kn_moment moment, int epoch, int64_t step, kn_tensor *loss)
{
    static const char *const names[] = {[KN_FIT_START] = "on_fit_start",
                                        [KN_EPOCH_START] = "on_epoch_start",
                                        [KN_BEFORE_OPTIMIZER_STEP] = "on_before_optimizer_step",
                                        [KN_STEP_END] = "on_step_end",
                                        [KN_EPOCH_END] = "on_epoch_end",
                                        [KN_FIT_END] = "on_fit_end"};
    for (int i = 0; i < trainer->num_callbacks; i++) {
        kn_callback callback = trainer->callbacks[i]; /* a copy: the callback may add callbacks */
        KN_TRY(tell(call_one(trainer, &callback, moment, epoch, step, loss), i, names[moment]));
    }
    return KN_OK;
}

/* --- saving states -------------------------------------------------------------------------------------------- */

static char *joined(const char *a, const char *b, const char *c)
{
    kn_text text = {0};
    kn_text_format(&text, "%s%s%s", a, b, c);
    return kn_text_finish(&text);
}

static kn_status put_metadata(kn_tensor_file *file, const char *prefix, const char *name, const char *value)
{
    char *key = joined(prefix, name, "");
    kn_status status = key != NULL ? kn_tensor_file_set_metadata(file, key, value) : KN_ERR_MEMORY;
    kn_free(key);
    return status;
}

/* Adds everything in `state`, with `prefix` ("callback.N.") before the names. */
static kn_status put_state(kn_tensor_file *file, const char *prefix, const kn_tensor_file *state)
{
    for (int i = 0; i < state->count; i++)
        KN_TRY(kn_checkpoint_put(file, prefix, state->tensors[i].name, state->tensors[i].tensor));
    for (int i = 0; i < state->metadata_count; i++)
        KN_TRY(put_metadata(file, prefix, state->metadata[i].key, state->metadata[i].value));
    return KN_OK;
}

static kn_status save(kn_trainer *trainer, int index, kn_tensor_file *file)
{
    const kn_callback *callback = &trainer->callbacks[index];
    KN_TRY(put_metadata(file, PREFIX, callback->name, "state"));
    char *prefix = joined(PREFIX, callback->name, ".");
    kn_tensor_file *state = kn_tensor_file_new();
    int depth = state != NULL && prefix != NULL ? kn_scope_begin() : 0;
    kn_status status = depth > 0 ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK)
        status = tell(callback->save(trainer, state, callback->user), index, "save");
    if (status == KN_OK)
        status = put_state(file, prefix, state);
    if (depth > 0)
        kn_scope_end(depth);
    kn_tensor_file_free(state);
    kn_free(prefix);
    return status;
}

kn_status kn_trainer_put_callbacks(kn_trainer *trainer, kn_tensor_file *file)
{
    for (int i = 0; i < trainer->num_callbacks; i++) {
        if (has_state(&trainer->callbacks[i]))
            KN_TRY(save(trainer, i, file));
    }
    return KN_OK;
}

/* --- loading states ----------------------------------------------------------------------------------------------- */

/* The file's entries whose names begin with `prefix`, under the rest of their names. */
static kn_status get_state(const kn_tensor_file *file, const char *prefix, kn_tensor_file *state)
{
    const size_t length = strlen(prefix);
    for (int i = 0; i < file->count; i++) {
        if (strncmp(file->tensors[i].name, prefix, length) == 0)
            KN_TRY(kn_tensor_file_append(state, file->tensors[i].name + length, file->tensors[i].tensor));
    }
    for (int i = 0; i < file->metadata_count; i++) {
        if (strncmp(file->metadata[i].key, prefix, length) == 0)
            KN_TRY(kn_tensor_file_append_metadata(state, file->metadata[i].key + length, file->metadata[i].value));
    }
    return KN_OK;
}

static kn_status load(kn_trainer *trainer, int index, const kn_tensor_file *file, const char *path)
{
    const kn_callback *callback = &trainer->callbacks[index];
    char *key = joined(PREFIX, callback->name, ""), *prefix = joined(PREFIX, callback->name, ".");
    kn_tensor_file *state = kn_tensor_file_new();
    kn_status status = key != NULL && prefix != NULL && state != NULL ? KN_OK : KN_ERR_MEMORY;
    bool is_there = status == KN_OK && kn_tensor_file_metadata(file, key) != NULL;
    if (status == KN_OK && !is_there && kn_ranks_leads(trainer))
        kn_log_message(KN_LOG_WARNING,
                       "%s has no state for the callback \"%s\", which starts afresh: the results will differ from "
                       "those of an uninterrupted run",
                       path, callback->name);
    if (is_there)
        status = get_state(file, prefix, state);
    if (is_there && status == KN_OK)
        status = tell(callback->load(trainer, state, callback->user), index, "load");
    kn_tensor_file_free(state);
    kn_free(prefix);
    kn_free(key);
    return status;
}

/* Warns about states in the file that no callback claims. */
static void report_unknown(const kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    const size_t length = strlen(PREFIX);
    for (int i = 0; i < file->metadata_count; i++) {
        const char *key = file->metadata[i].key;
        if (strncmp(key, PREFIX, length) != 0 || strchr(key + length, '.') != NULL || find(trainer, key + length))
            continue;
        kn_log_message(KN_LOG_WARNING,
                       "%s has the state of a callback \"%s\" that this trainer does not have: the results will differ "
                       "from those of an uninterrupted run",
                       path, key + length);
    }
}

kn_status kn_trainer_get_callbacks(kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    for (int i = 0; i < trainer->num_callbacks; i++) {
        if (has_state(&trainer->callbacks[i]))
            KN_TRY(load(trainer, i, file, path));
    }
    if (kn_ranks_leads(trainer))
        report_unknown(trainer, file, path);
    return KN_OK;
}
