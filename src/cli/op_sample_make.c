/* cli/op_sample_make.c - makes the inputs and parameters of a sample. */
#include <koine/koine.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cli/op_samples.h"
#include "ops/dispatch/params_text.h"

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

/* Numbers from 0.25 to 1.25 (also if `range` is '!'); if it is '<' from 0 to 0.95, if '>' from 1.25 to 2.25. */
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
        return floating(ndim, shape, *end, dtype, gradients && *end != '!');
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

/* --- samples ------------------------------------------------------------------------------------------------------ */

kn_status kn_op_sample_make(kn_op_sample *sample, const kn_op *op, kn_dtype dtype, bool gradients)
{
    const kn_op_info info = kn_op_describe(op);
    const kn_op_sample_row *row = kn_op_sample_find(info.name);
    *sample = (kn_op_sample){.params = info.params_size > 0 ? kn_malloc(info.params_size) : NULL};
    if (info.params_size > 0 && !sample->params)
        return KN_ERR_MEMORY;
    kn_op_params_init(op, sample->params);
    kn_status status = kn_op_params_read(op, sample->params, row ? row->params : NULL);
    if (status == KN_OK)
        status = make_inputs(sample, op, row ? row->inputs : NULL, dtype, gradients);
    if (status != KN_OK)
        kn_op_sample_free(sample);
    return status;
}

void kn_op_sample_free(kn_op_sample *sample)
{
    kn_free(sample->params);
    sample->params = NULL;
}
