/* outcome.c - what calls did, as text. */
#include "outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "error: ";

bool is_error(const char *text) { return strncmp(text, mark, sizeof mark - 1) == 0; }

/* --- texts ------------------------------------------------------------------------------------------------------ */

/* Writes a text through a stream; NULL if out of memory. */
typedef struct writing {
    char *text;
    size_t length;
    FILE *file;
} writing;

static bool begin(writing *to)
{
    *to = (writing){NULL, 0, NULL};
    to->file = open_memstream(&to->text, &to->length);
    return to->file != NULL;
}

static char *end(writing *to)
{
    fclose(to->file);
    return to->text;
}

static void write_kind(FILE *file, kn_tensor *tensor)
{
    fprintf(file, "%s on %s, requires_grad %d, pinned %d, [", kn_dtype_name(kn_dtype_of(tensor)),
            kn_device_string(kn_device_of(tensor)), kn_requires_grad(tensor), kn_is_pinned(tensor));
    for (int d = 0; d < kn_ndim(tensor); d++)
        fprintf(file, "%s%lld", d > 0 ? ", " : "", (long long)kn_size(tensor, d));
    fputs("]", file);
}

static void write_values(FILE *file, kn_tensor *tensor)
{
    const size_t bytes = (size_t)kn_numel(tensor) * kn_dtype_size(kn_dtype_of(tensor));
    unsigned char *values = malloc(bytes > 0 ? bytes : 1);
    if (values == NULL || kn_read(tensor, values, bytes) != KN_OK) {
        fprintf(file, " unread: %s", kn_error_message());
    } else {
        for (size_t i = 0; i < bytes; i++)
            fprintf(file, "%s%02x", i % 4 == 0 ? " " : "", values[i]);
    }
    fputs("\n", file);
    free(values);
}

char *show_error(void)
{
    const size_t size = sizeof mark + strlen(kn_error_message());
    char *text = malloc(size);
    if (text != NULL)
        snprintf(text, size, "%s%s", mark, kn_error_message());
    kn_error_clear();
    return text;
}

char *show_kind(kn_tensor *tensor)
{
    writing to;
    if (tensor == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    write_kind(to.file, tensor);
    return end(&to);
}

char *show_tensor(kn_tensor *tensor)
{
    writing to;
    if (tensor == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    write_kind(to.file, tensor);
    write_values(to.file, tensor);
    return end(&to);
}

char *show_text(char *text)
{
    char *copy = text != NULL ? strdup(text) : show_error();
    kn_free(text);
    return copy;
}

/* --- modules and optimizers ------------------------------------------------------------------------------------- */

static kn_module *module;
static kn_optim *optim;
static kn_dataset *data;

static void write_list(FILE *file, kn_parameter_list list)
{
    for (int i = 0; i < list.count; i++) {
        fprintf(file, "%s ", list.names[i]);
        write_values(file, list.tensors[i]);
    }
}

char *show_module(kn_module *shown)
{
    writing to;
    if (shown == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    char *summary = kn_module_summary(shown);
    fputs(summary, to.file);
    kn_free(summary);
    write_list(to.file, kn_module_parameters(shown));
    write_list(to.file, kn_module_buffers(shown));
    kn_module_free(shown);
    return end(&to);
}

kn_module *some_module(void)
{
    kn_optim_free(optim);
    optim = NULL;
    kn_module_free(module);
    kn_manual_seed(7);
    module = kn_nn_linear(.in_features = 2, .out_features = 3);
    return module;
}

kn_parameter_list some_parameters(void) { return kn_module_parameters(some_module()); }

kn_optim *some_optim(void)
{
    kn_optim_free(optim);
    optim = kn_optim_sgd(kn_module_parameters(module), .lr = 0.1);
    return optim;
}

static kn_tensor *evaluate(void *user)
{
    kn_tensor *x = kn_full(KN_SHAPE(4, 2), 0.75), *y = kn_zeros(KN_SHAPE(4, 3));
    kn_optim_zero_grad(user);
    kn_tensor *loss = kn_mse_loss(kn_forward(module, x), y, KN_REDUCTION_SUM);
    return kn_backward(loss) == KN_OK ? loss : NULL;
}

static bool step(kn_optim *stepped)
{
    KN_SCOPE;
    return kn_optim_step_closure(stepped, evaluate, stepped) != NULL;
}

char *show_optim(kn_optim *shown)
{
    writing to;
    if (shown == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (!step(shown))
            fprintf(to.file, "%s\n", kn_error_message());
    fprintf(to.file, "lr %.17g\n", kn_optim_lr(shown));
    write_list(to.file, kn_module_parameters(module));
    kn_optim_free(shown);
    return end(&to);
}

/* --- data and training ------------------------------------------------------------------------------------------ */

kn_dataset *some_data(void)
{
    KN_SCOPE;
    const kn_tensor_options on_host = {.device = kn_device_host()};
    const float inputs[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const int64_t targets[] = {0, 2, 1, 1, 0};
    kn_dataset_free(data);
    data = NULL;
    data = kn_tensor_dataset(kn_from_data_with(inputs, KN_SHAPE(5, 2), &on_host),
                             kn_from_data(targets, KN_SHAPE(5), .dtype = KN_I64, .device = kn_device_host()));
    return data;
}

char *show_loader(kn_loader *loader)
{
    writing to;
    if (loader == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    KN_FOR_BATCHES (batch, loader, 1)
        for (int i = 0; i < batch->num_fields; i++) {
            write_kind(to.file, batch->fields[i]);
            write_values(to.file, batch->fields[i]);
        }
    fprintf(to.file, "%lld batches\n", (long long)kn_loader_batches(loader));
    kn_loader_free(loader);
    return end(&to);
}

char *show_trainer(kn_trainer *trainer)
{
    kn_loader *loader = NULL;
    char *text = NULL;
    if (trainer == NULL)
        return show_error();
    if ((loader = kn_loader_new(some_data(), .batch_size = 5)) != NULL &&
        kn_trainer_fit(trainer, loader, loader) == KN_OK)
        text = show_text(kn_history_table(kn_trainer_history(trainer)));
    else
        text = show_error();
    kn_loader_free(loader);
    kn_trainer_free(trainer);
    return text;
}

/* --- the profiler ----------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kn_profiler_row *)a)->name, ((const kn_profiler_row *)b)->name);
}

char *show_profile(void)
{
    kn_profiler_row *rows = NULL;
    int count = 0;
    writing to;
    if ((rows = kn_profiler_key_averages(true, &count)) == NULL)
        return show_error();
    if (!begin(&to))
        return NULL;
    qsort(rows, (size_t)count, sizeof *rows, by_name);
    for (int i = 0; i < count; i++)
        fprintf(to.file, "%s %s %lld %g %lld\n", rows[i].name, rows[i].input_shapes, (long long)rows[i].count,
                rows[i].flops, (long long)rows[i].device_memory_usage);
    kn_free(rows);
    return end(&to);
}

void forget_outcomes(void)
{
    kn_optim_free(optim);
    kn_module_free(module);
    kn_dataset_free(data);
    optim = NULL;
    module = NULL;
    data = NULL;
}
