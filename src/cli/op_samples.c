/* cli/op_samples.c - see op_samples.h. */
#include "cli/op_samples.h"

#include <koine/koine.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* One word per input: "2,3" a floating tensor of that shape, "2,3<" and "2,3>" with elements below and above 1, "5:4"
 * five indices below 4, "2,3:b" conditions, "-" omitted, "." a 0-dimensional floating tensor. Parameters as
 * "name=value", lists as "dims=1,0". Operators not listed have inputs of [2, 3] and default parameters. */
static const struct {
    const char *op, *inputs, *params;
} samples[] = {
    {"acos", "2,3<", NULL},
    {"acosh", "2,3>", NULL},
    {"adaptive_avg_pool1d", "1,2,6", "output_size=2"},
    {"adaptive_avg_pool1d_backward", "1,2,2 1,2,6", "output_size=2"},
    {"adaptive_avg_pool2d", "1,2,4,4", "output_size=2,2"},
    {"adaptive_avg_pool2d_backward", "1,2,2,2 1,2,4,4", "output_size=2,2"},
    {"adaptive_avg_pool3d", "1,1,4,4,4", "output_size=2,2,2"},
    {"adaptive_avg_pool3d_backward", "1,1,2,2,2 1,1,4,4,4", "output_size=2,2,2"},
    {"adaptive_max_pool1d", "1,2,6", "output_size=2"},
    {"adaptive_max_pool1d_with_indices", "1,2,6", "output_size=2"},
    {"adaptive_max_pool1d_with_indices_backward", "1,2,1 1,2,6 1,2,1:6", "output_size=1"},
    {"adaptive_max_pool2d", "1,2,4,4", "output_size=2,2"},
    {"adaptive_max_pool2d_with_indices", "1,2,4,4", "output_size=2,2"},
    {"adaptive_max_pool2d_with_indices_backward", "1,2,1,1 1,2,4,4 1,2,1,1:16", "output_size=1,1"},
    {"adaptive_max_pool3d", "1,1,4,4,4", "output_size=2,2,2"},
    {"adaptive_max_pool3d_with_indices", "1,1,4,4,4", "output_size=2,2,2"},
    {"adaptive_max_pool3d_with_indices_backward", "2,1,1,1,1 2,1,2,2,2 2,1,1,1,1:8", "output_size=1,1,1"},
    {"amax_backward", "1,1 2,3 1,1", "dims=0,1 keepdim=1"},
    {"amin_backward", "1,1 2,3 1,1", "dims=0,1 keepdim=1"},
    {"as_strided", "2,3", "shape=2,4 strides=2,1"},
    {"as_strided_backward", "2,3", "size=7 strides=2,1 offset=1"},
    {"asin", "2,3<", NULL},
    {"atanh", "2,3<", NULL},
    {"avg_pool1d", "1,2,6", "kernel_size=2"},
    {"avg_pool1d_backward", "1,2,3 1,2,6", "kernel_size=2"},
    {"avg_pool2d", "1,2,4,4", "kernel_size=2"},
    {"avg_pool2d_backward", "1,2,2,2 1,2,4,4", "kernel_size=2"},
    {"avg_pool3d", "1,1,4,4,4", "kernel_size=2"},
    {"avg_pool3d_backward", "1,1,2,2,2 1,1,4,4,4", "kernel_size=2"},
    {"batch_norm", "4,2 2 2", "training=1"},
    {"batch_norm_backward", "4,2 4,2 2 2", "training=1"},
    {"binary_cross_entropy_with_logits", "2,3 2,3:b", NULL},
    {"binary_cross_entropy_with_logits_backward", ". 2,3 2,3:b", NULL},
    {"cat", "2,3 1,3 2,3", NULL},
    {"conv1d", "1,2,6 3,2,3 3", "padding=1"},
    {"conv1d_backward", "1,3,6 1,2,6 3,2,3 3", "padding=1"},
    {"conv2d", "1,2,4,4 3,2,3,3 3", "padding=1"},
    {"conv2d_backward", "1,3,4,4 1,2,4,4 3,2,3,3 3", "padding=1"},
    {"conv3d", "1,1,3,3,3 2,1,2,2,2 2", "padding=1"},
    {"conv3d_backward", "1,2,4,4,4 1,1,3,3,3 2,1,2,2,2 2", "padding=1"},
    {"conv_transpose1d", "1,2,4 2,3,3 3", "stride=2"},
    {"conv_transpose1d_backward", "1,3,9 1,2,4 2,3,3 3", "stride=2"},
    {"conv_transpose2d", "1,2,3,3 2,1,2,2 1", "stride=2"},
    {"conv_transpose2d_backward", "1,1,6,6 1,2,3,3 2,1,2,2 1", "stride=2"},
    {"conv_transpose3d", "1,1,2,2,2 1,2,2,2,2 2", "stride=2"},
    {"conv_transpose3d_backward", "1,2,4,4,4 1,1,2,2,2 1,2,2,2,2 2", "stride=2"},
    {"cross_entropy", "4,3 4:3", NULL},
    {"cross_entropy_backward", ". 4,3 4:3", NULL},
    {"expand", "2,1", "shape=2,3"},
    {"fill_", "2,3", "value=3"},
    {"index_select", "4,3 5:4", "dim=0"},
    {"index_select_backward", "5,3 4,3 5:4", "dim=0"},
    {"layer_norm", "2,3 3 3", "shape=3"},
    {"layer_norm_backward", "2,3 2,3 3 3", "shape=3"},
    {"linear", "2,3 4,3 4", "activation=1"},
    {"linear_backward", "2,4 2,3 4,3 4", NULL},
    {"logsumexp_backward", "1,1 2,3 1,1", "dims=0,1 keepdim=1"},
    {"matmul", "2,3 3,4", NULL},
    {"max_backward", ". 2,3 .", NULL},
    {"max_dim_backward", "3 2,3 3:2", NULL},
    {"max_pool1d", "1,2,6", "kernel_size=2"},
    {"max_pool1d_with_indices", "1,2,6", "kernel_size=2"},
    {"max_pool1d_with_indices_backward", "1,2,1 1,2,6 1,2,1:6", "kernel_size=6"},
    {"max_pool2d", "1,2,4,4", "kernel_size=2"},
    {"max_pool2d_with_indices", "1,2,4,4", "kernel_size=2"},
    {"max_pool2d_with_indices_backward", "1,2,1,1 1,2,4,4 1,2,1,1:16", "kernel_size=4"},
    {"max_pool3d", "1,1,4,4,4", "kernel_size=2"},
    {"max_pool3d_with_indices", "1,1,4,4,4", "kernel_size=2"},
    {"max_pool3d_with_indices_backward", "2,1,1,1,1 2,1,2,2,2 2,1,1,1,1:8", "kernel_size=2"},
    {"min_backward", ". 2,3 .", NULL},
    {"min_dim_backward", "3 2,3 3:2", NULL},
    {"mse_loss_backward", ". 2,3 2,3", NULL},
    {"mul_scalar", "2,3", "value=3"},
    {"mul_scalar_", "2,3", "value=3"},
    {"narrow", "2,4", "dim=1 start=1 length=2"},
    {"narrow_backward", "2,2", "dim=1 start=1 size=5"},
    {"nll_loss", "4,3 4:3", NULL},
    {"nll_loss_backward", ". 4,3 4:3", NULL},
    {"norm_backward", "1,1 2,3 1,1", "dims=0,1 keepdim=1"},
    {"permute", "2,3", "dims=1,0"},
    {"pow_scalar", "2,3", "exponent=2.5"},
    {"prod_backward", "1,1 2,3", "dims=0,1 keepdim=1"},
    {"reshape", "2,3", "shape=3,2"},
    {"select", "2,3", "dim=1 index=2"},
    {"squeeze", "2,1", "dim=1"},
    {"stack", "2,3 2,3 2,3", "dim=1"},
    {"std_backward", "1,1 2,3 1,1", "dims=0,1 keepdim=1"},
    {"to_dtype", "2,3", "dtype=1"},
    {"var_backward", "1,1 2,3", "dims=0,1 keepdim=1"},
    {"view_dtype", "2,8", "dtype=1"},
    {"where", "2,3:b 2,3 2,3", NULL},
};
enum { COUNT = sizeof samples / sizeof samples[0] };

static int find(const char *op)
{
    int i = 0;
    while (i < COUNT && strcmp(samples[i].op, op) != 0)
        i++;
    return i;
}

/* Parses comma-separated numbers; returns their count and, in `rest`, where they end. */
static int read_list(int64_t *values, int most, const char *text, const char **rest)
{
    char *end = (char *)(uintptr_t)text;
    int count = 0;
    do {
        values[count] = strtoll(count > 0 ? end + 1 : end, &end, 10);
        count++;
    } while (*end == ',' && count < most);
    *rest = end;
    return count;
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* Numbers from 0.25 to 1.25; if `range` is '<' from 0 to 0.95, if '>' from 1.25 to 2.25. */
static kn_tensor *floating(int ndim, const int64_t *shape, char range, kn_dtype dtype, bool gradients)
{
    kn_tensor *values = kn_rand_with(ndim, shape, &(kn_tensor_options){.dtype = dtype});
    if (!values)
        return NULL;
    KN_NO_GRAD;
    values = range == '<' ? kn_mul_scalar(values, 0.95) : kn_add_scalar(values, range == '>' ? 1.25 : 0.25);
    values = kn_detach(values);
    return values && (!gradients || kn_set_requires_grad(values, true) == KN_OK) ? values : NULL;
}

static kn_tensor *input_of(const char *word, kn_dtype dtype, bool gradients)
{
    int64_t shape[KN_MAX_DIMS];
    const char *end;
    if (*word == '.')
        return floating(0, NULL, word[1], dtype, gradients);
    const int ndim = read_list(shape, KN_MAX_DIMS, word, &end);
    if (*end != ':')
        return floating(ndim, shape, *end, dtype, gradients);
    if (end[1] == 'b')
        return kn_to_dtype(kn_randint_with(0, 2, ndim, shape, NULL), KN_BOOL);
    return kn_randint_with(0, strtoll(end + 1, NULL, 10), ndim, shape, NULL);
}

static kn_status make_inputs(kn_op_sample *sample, const kn_op *op, const char *words, kn_dtype dtype, bool gradients)
{
    const kn_op_info info = kn_op_describe(op);
    const bool is_list = kn_op_input_at(op, info.num_inputs - 1).is_list;
    for (int i = 0; i < info.num_inputs || (is_list && words && *words != '-'); i++) {
        const char *word = words ? words : "2,3";
        if (words)
            words = strchr(words, ' ') ? strchr(words, ' ') + 1 : "-";
        else if (kn_op_input_at(op, i).is_optional)
            break;
        sample->num_inputs = i + 1;
        if (*word == '-')
            continue;
        sample->inputs[i] = input_of(word, dtype, gradients);
        if (!sample->inputs[i])
            return kn_error_status();
    }
    return KN_OK;
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

static void set(const kn_op_param *param, void *at, const char *text)
{
    const char *end;
    switch (param->kind) {
    case KN_PARAM_BOOL:
        *(bool *)at = *text == '1';
        break;
    case KN_PARAM_INT:
    case KN_PARAM_ENUM:
    case KN_PARAM_DTYPE:
        *(int *)at = atoi(text);
        break;
    case KN_PARAM_INT64:
        read_list(at, (int)(param->size / sizeof(int64_t)), text, &end);
        break;
    case KN_PARAM_DOUBLE:
        *(double *)at = atof(text);
        break;
    case KN_PARAM_SCALAR:
        *(kn_scalar *)at = strchr(text, '.') ? kn_scalar_real(atof(text)) : kn_scalar_int(atoi(text));
        break;
    case KN_PARAM_INTS:
        ((kn_ints *)at)->count = read_list(((kn_ints *)at)->values, KN_MAX_DIMS, text, &end);
        break;
    case KN_PARAM_GENERATOR: /* the device's */
        break;
    }
}

/* Sets the parameters named in `words`. */
static kn_status set_params(const kn_op *op, char *params, const char *words)
{
    while (words && *words) {
        const size_t length = strcspn(words, "=");
        const kn_op_param *param = NULL;
        for (int i = 0; i < kn_op_describe(op).num_params && !param; i++)
            if (strlen(kn_op_param_at(op, i)->name) == length &&
                strncmp(kn_op_param_at(op, i)->name, words, length) == 0)
                param = kn_op_param_at(op, i);
        if (!param)
            return kn_fail(KN_ERR_INTERNAL, "the sample of %s sets an unknown parameter: %s", kn_op_describe(op).name,
                           words);
        set(param, params + param->offset, words + length + 1);
        words = strchr(words, ' ');
        words += words != NULL;
    }
    return KN_OK;
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

kn_status kn_op_sample_make(kn_op_sample *sample, const kn_op *op, kn_dtype dtype, bool gradients)
{
    const kn_op_info info = kn_op_describe(op);
    const int row = find(info.name);
    *sample = (kn_op_sample){.params = info.params_size > 0 ? kn_malloc(info.params_size) : NULL};
    if (info.params_size > 0 && !sample->params)
        return KN_ERR_MEMORY;
    kn_op_params_init(op, sample->params);
    kn_status status = set_params(op, sample->params, row < COUNT ? samples[row].params : NULL);
    if (status == KN_OK)
        status = make_inputs(sample, op, row < COUNT ? samples[row].inputs : NULL, dtype, gradients);
    if (status != KN_OK)
        kn_op_sample_free(sample);
    return status;
}

void kn_op_sample_free(kn_op_sample *sample)
{
    kn_free(sample->params);
    sample->params = NULL;
}
