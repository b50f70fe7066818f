/* nn/models/models.c - the networks of the zoo by name. */
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "nn/models/build.h"

#define ENTRY(name) {#name, kn_model_##name},
static const struct {
    const char *name;
    kn_module *(*make)(const kn_models_params *params);
} models[] = {KN_MODELS(ENTRY)};

const char *kn_models_name(int index) { return index >= 0 && index < KN_COUNT(models) ? models[index].name : NULL; }

static kn_module *unknown(const char *name)
{
    kn_text list = {0};
    for (int i = 0; i < KN_COUNT(models); i++)
        kn_text_format(&list, "%s%s", i > 0 ? ", " : "", models[i].name);
    char *text = kn_text_finish(&list);
    kn_fail_null(KN_ERR_ARGUMENT, "models_new: there is no network \"%s\"; there are %s", name, text ? text : "others");
    kn_free(text);
    return NULL;
}

kn_module *kn_models_new_with(const char *name, const kn_models_params *params)
{
    if (!name)
        return kn_fail_argument_null("models_new", "name"), kn_error_make_sticky();
    params = params ? params : &(kn_models_params){KN_MODELS_DEFAULTS};
    if (params->num_classes < 1 || params->in_channels < 1)
        return kn_fail_null(KN_ERR_ARGUMENT, "models_new: num_classes (%lld) and in_channels (%lld) must be at least 1",
                            (long long)params->num_classes, (long long)params->in_channels);
    for (int i = 0; i < KN_COUNT(models); i++)
        if (strcmp(models[i].name, name) == 0)
            return models[i].make(params);
    return unknown(name);
}
