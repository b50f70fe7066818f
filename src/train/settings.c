/* train/settings.c - settings outside the tensors that affect results bit for bit: batching and shuffling, the device,
 * the optimizer's hyperparameters. Saved with the run and compared when it is resumed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "data/loader.h"
#include "data/sampler.h"
#include "nn/module.h"
#include "optim/optim.h"
#include "train/ranks.h"

/* --- noting ---------------------------------------------------------------------------------------------------- */

/* Device names come from the driver and may be invalid UTF-8 or cut within a character: stored as printable text. */
static void add(kn_settings *settings, const char *name, const char *format, ...) KN_PRINTF(3, 4);
static void add(kn_settings *settings, const char *name, const char *format, ...)
{
    if (settings->count == KN_MAX_SETTINGS)
        return;
    kn_setting *setting = &settings->all[settings->count++];
    *setting = (kn_setting){.name = name};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(setting->value, sizeof setting->value, format, arguments);
    va_end(arguments);
    for (char *c = setting->value; *c != '\0'; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
}

static void add_flag(kn_settings *settings, const char *name, bool value)
{
    add(settings, name, "%s", value ? "true" : "false");
}

/* Those of the first group; further groups are only in the optimizer's state. */
static void add_optimizer(kn_settings *settings, const kn_optim *optim)
{
    char number[KN_NUMBER_TEXT];
    for (int i = 0; optim->algorithm->hyper[i].name != NULL; i++) {
        add(settings, optim->algorithm->hyper[i].name, "%s", kn_format_number(number, optim->groups[0].hyper[i]));
        settings->all[settings->count - 1].is_optimizer = true;
    }
}

void kn_trainer_note_settings(kn_trainer *trainer, const kn_loader *train, const kn_loader *validation)
{
    kn_settings *settings = &trainer->settings;
    settings->count = 0;
    add_optimizer(settings, trainer->params.optim);
    add(settings, "batch_size", "%lld", (long long)train->params.batch_size);
    add_flag(settings, "shuffle", train->params.shuffle);
    if (train->params.sampler)
        add(settings, "sampler", "%s", train->sampler->description);
    add_flag(settings, "drop_last", train->params.drop_last);
    if (trainer->params.accumulate > 1)
        add(settings, "accumulate", "%d", trainer->params.accumulate);
    add(settings, "seed", "%llu", (unsigned long long)train->params.seed);
    add(settings, "samples", "%lld", (long long)train->length);
    if (validation != NULL) {
        add(settings, "validation batch_size", "%lld", (long long)validation->params.batch_size);
        add(settings, "validation samples", "%lld", (long long)validation->length);
    }
    kn_module *module = trainer->params.module;
    kn_parameter_list list = kn_module_parameters(module);
    add(settings, "device", "%s", kn_device_name(kn_trainer_device(trainer)));
    add(settings, "ranks", "%d", kn_ranks_count(trainer));
    add(settings, "devices", "%d", module->num_devices > 1 ? module->num_devices : 1);
    if (list.count > 0)
        add(settings, "dtype", "%s", kn_dtype_name(kn_dtype_of(list.tensors[0])));
    add(settings, "precision", "%s", kn_dtype_name(trainer->params.precision));
}

/* --- in the file ----------------------------------------------------------------------------------------------- */

static char *key_of(const kn_setting *setting)
{
    kn_text key = {0};
    kn_text_format(&key, "setting.%s", setting->name);
    return kn_text_finish(&key);
}

kn_status kn_trainer_put_settings(const kn_trainer *trainer, kn_tensor_file *file)
{
    for (int i = 0; i < trainer->settings.count; i++) {
        char *key = key_of(&trainer->settings.all[i]);
        kn_status status = KN_ERR_MEMORY;
        if (key != NULL)
            status = kn_tensor_file_set_metadata(file, key, trainer->settings.all[i].value);
        kn_free(key);
        KN_TRY(status);
    }
    return KN_OK;
}

/* --- compared -------------------------------------------------------------------------------------------------- */

/* The optimizer continues with the value in effect when the run was saved. A value that this program did not change
 * equals either that or the saved run's initial one. */
static void compare_hyperparameter(kn_text *text, kn_setting *setting, const char *saved, double in_force)
{
    char number[KN_NUMBER_TEXT];
    kn_format_number(number, in_force);
    if (strcmp(setting->value, saved) != 0 && strcmp(setting->value, number) != 0)
        kn_text_format(text, "%s%s %s, not %s", text->length > 0 ? ", " : "", setting->name, number, setting->value);
    snprintf(setting->value, sizeof setting->value, "%s", saved);
}

static void compare(kn_text *text, const kn_setting *setting, const char *saved)
{
    if (strcmp(setting->value, saved) != 0)
        kn_text_format(text, "%s%s %s (it had %s)", text->length > 0 ? ", " : "", setting->name, setting->value, saved);
}

kn_status kn_trainer_compare_settings(kn_trainer *trainer, const kn_tensor_file *file, const char *path)
{
    kn_text optimizer = {0}, others = {0};
    kn_status status = KN_OK;
    for (int i = 0; i < trainer->settings.count && status == KN_OK; i++) {
        kn_setting *setting = &trainer->settings.all[i];
        char *key = key_of(setting);
        const char *saved = key != NULL ? kn_tensor_file_metadata(file, key) : NULL;
        if (saved != NULL && setting->is_optimizer) /* these come first, in the optimizer's order */
            compare_hyperparameter(&optimizer, setting, saved, trainer->params.optim->groups[0].hyper[i]);
        else if (saved != NULL)
            compare(&others, setting, saved);
        status = key != NULL ? KN_OK : KN_ERR_MEMORY;
        kn_free(key);
    }
    if (optimizer.length > 0 && !optimizer.failed && kn_ranks_leads(trainer))
        kn_log_message(KN_LOG_WARNING, "resuming from %s uses its hyperparameters: %s", path, optimizer.data);
    if (others.length > 0 && !others.failed && kn_ranks_leads(trainer))
        kn_log_message(KN_LOG_WARNING,
                       "resuming from %s with settings other than those it was saved with: %s; the results will differ "
                       "from those of an uninterrupted run",
                       path, others.data);
    if (optimizer.failed || others.failed)
        status = KN_ERR_MEMORY;
    kn_text_free(&optimizer);
    kn_text_free(&others);
    return status;
}
