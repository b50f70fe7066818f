/* nn/summary_pass.c - see nn/summary.h. */
#include <koine/autograd.h>
#include <koine/random.h>

#include "autograd/work.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/summary.h"

/* The observer's state during the pass. */
typedef struct pass {
    kn_figures_list *list;
    int open[64]; /* indices of the modules being applied, innermost last; deeper ones count towards the last */
    int depth;
    bool failed; /* out of memory */
} pass;

static kn_module_figures *find(const kn_figures_list *list, const kn_module *module)
{
    for (int i = 0; i < list->count; i++)
        if (list->items[i].module == module)
            return &list->items[i];
    return NULL;
}

const kn_module_figures *kn_figures_find(const kn_figures_list *list, const kn_module *module)
{
    const kn_module_figures *found = find(list, module);
    return found != NULL && found->output != NULL ? found : NULL;
}

enum { MAX_OPEN = sizeof((pass *)0)->open / sizeof(int) };

char *kn_describe_shapes(kn_tensor *const *tensors, int count)
{
    kn_text text = {0};
    char shape[KN_MAX_DIMS * 22];
    for (int i = 0; i < count; i++) {
        if (tensors[i] != NULL)
            kn_format_shape(shape, sizeof shape, kn_ndim(tensors[i]), kn_shape(tensors[i]));
        kn_text_format(&text, "%s%s", i > 0 ? ", " : "", tensors[i] != NULL ? shape : "none");
    }
    return kn_text_finish(&text);
}

static void on_module(const kn_module *module, kn_tensor *const *outputs, int num_outputs, void *user)
{
    pass *p = user;
    kn_module_figures *figures = find(p->list, module);
    if (outputs == NULL) {
        if (p->depth < MAX_OPEN)
            p->open[p->depth] = figures != NULL ? (int)(figures - p->list->items) : -1;
        p->depth++;
        return;
    }
    p->depth--;
    if (figures == NULL)
        return;
    kn_free(figures->output);
    figures->output = kn_describe_shapes(outputs, num_outputs);
    p->failed = p->failed || figures->output == NULL;
}

static kn_status on_op(kn_call *call, bool after, void *user)
{
    pass *p = user;
    if (!after)
        return KN_OK;
    double multiply_adds = kn_call_work(call).multiply_adds;
    int innermost = p->depth <= 0 ? -1 : p->open[p->depth <= MAX_OPEN ? p->depth - 1 : MAX_OPEN - 1];
    p->list->multiply_adds += multiply_adds;
    if (innermost >= 0)
        p->list->items[innermost].multiply_adds += multiply_adds;
    return KN_OK;
}

static int count_modules(const kn_module *module)
{
    int count = 1;
    for (int i = 0; i < module->num_children; i++)
        count += count_modules(module->children[i].module);
    return count;
}

static void list_modules(kn_figures_list *list, const kn_module *module)
{
    list->items[list->count++].module = module;
    for (int i = 0; i < module->num_children; i++)
        list_modules(list, module->children[i].module);
}

/* Saves the mode of each module, which may differ from its parent's. */
static void save_modes(const kn_module *module, bool *modes, int *next)
{
    modes[(*next)++] = module->training;
    for (int i = 0; i < module->num_children; i++)
        save_modes(module->children[i].module, modes, next);
}

static void restore_modes(kn_module *module, const bool *modes, int *next)
{
    module->training = modes[(*next)++];
    for (int i = 0; i < module->num_children; i++)
        restore_modes(module->children[i].module, modes, next);
}

/* Runs forward and discards the outputs. */
static kn_status apply(kn_module *module, kn_tensor *const *inputs, int num_inputs)
{
    const int count = kn_module_signature(module).outputs;
    kn_tensor **outputs = kn_calloc((size_t)count, sizeof *outputs);
    if (outputs == NULL)
        return KN_ERR_MEMORY;
    kn_status status = KN_OK;
    {
        KN_SCOPE;
        status = kn_forward_many(module, inputs, num_inputs, outputs, count);
    }
    kn_free(outputs);
    return status;
}

static kn_device *device_of(kn_tensor *const *inputs, int num_inputs)
{
    for (int i = 0; i < num_inputs; i++)
        if (inputs[i] != NULL)
            return kn_device_of(inputs[i]);
    return kn_device_current();
}

static kn_status dry_run(kn_figures_list *list, kn_module *module, kn_tensor *const *inputs, int num_inputs)
{
    pass p = {.list = list};
    uint8_t state[KN_RNG_STATE_SIZE]; /* forward functions may draw random numbers themselves */
    kn_device *device = device_of(inputs, num_inputs);
    if (device == NULL)
        return kn_error_status();
    KN_TRY(kn_get_rng_state(device, state));
    kn_op_observation watching = kn_op_set_observer(on_op, &p);
    kn_forward_observer modules = kn_forward_observe((kn_forward_observer){.applied = on_module, .user = &p});
    bool was_dry = kn_op_set_dry_run(true), recording = kn_set_grad_enabled(false);
    kn_status status = apply(module, inputs, num_inputs);
    if (status == KN_OK && p.failed)
        status = KN_ERR_MEMORY;
    kn_set_grad_enabled(recording);
    kn_op_set_dry_run(was_dry);
    kn_forward_observe(modules);
    kn_op_set_observer(watching.function, watching.user);
    kn_status restored = kn_set_rng_state(device, state);
    return status == KN_OK ? restored : status;
}

void kn_figures_free(kn_figures_list *list)
{
    for (int i = 0; i < list->count; i++)
        kn_free(list->items[i].output);
    kn_free(list->items);
    *list = (kn_figures_list){0};
}

kn_status kn_module_dry_run(kn_figures_list *list, kn_module *module, kn_tensor *const *inputs, int num_inputs)
{
    module = kn_module_unwrapped(module);
    int count = count_modules(module), next = 0;
    *list = (kn_figures_list){.items = kn_calloc((size_t)count, sizeof *list->items)};
    bool *modes = kn_calloc((size_t)count, sizeof *modes);
    kn_status status = list->items != NULL && modes != NULL ? KN_OK : KN_ERR_MEMORY;
    if (status == KN_OK) {
        list_modules(list, module);
        save_modes(module, modes, &next);
        kn_module_train(module, false);
        status = dry_run(list, module, inputs, num_inputs);
        next = 0;
        restore_modes(module, modes, &next);
    }
    kn_free(modes);
    return status;
}
