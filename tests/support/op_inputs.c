/* op_inputs.c - the inputs of a row: leaves with fixed numbers, and the layouts' views of them. */
#include <stdlib.h>
#include <string.h>

#include "support/op_run.h"

const char *op_layout_name(op_layout layout)
{
    static const char *const names[LAYOUT_COUNT] = {"plain", "strided", "transposed", "offset", "expanded"};
    return names[layout];
}

const char *op_short_dtype(kn_dtype dtype) { return dtype == KN_F64 ? "f64" : "f32"; }

int op_num_inputs(const op_row *row)
{
    int count = 0;
    while (count < OP_MAX_INPUTS && row->inputs[count].fill != FILL_END)
        count++;
    return count;
}

static kn_dtype dtype_of_input(const op_run *run, int index)
{
    kn_dtype dtype = run->row->inputs[index].dtype;
    return dtype == KN_DTYPE_DEFAULT ? run->dtype : dtype;
}

bool op_input_differentiable(const op_row *row, int index)
{
    const op_input *input = &row->inputs[index];
    return !row->no_gradient && !input->constant &&
           (input->dtype == KN_DTYPE_DEFAULT || kn_dtype_is_floating(input->dtype));
}

/* The shape of the leaf whose view in this layout has the input's shape. Returns the number of dimensions. */
static int leaf_shape(const op_input *input, op_layout layout, int64_t shape[KN_MAX_DIMS])
{
    int ndim = input->ndim;
    memcpy(shape, input->shape, sizeof input->shape);
    if (layout == LAYOUT_TRANSPOSED && ndim >= 2) {
        shape[ndim - 1] = input->shape[ndim - 2];
        shape[ndim - 2] = input->shape[ndim - 1];
    } else if (layout == LAYOUT_STRIDED || layout == LAYOUT_TRANSPOSED || (layout == LAYOUT_OFFSET && ndim == 0)) {
        shape[ndim++] = 3;
    } else if (layout == LAYOUT_OFFSET) {
        shape[0] += 3;
    } else if (layout == LAYOUT_EXPANDED && ndim > 0) {
        shape[0] = 1;
    }
    return ndim;
}

static kn_tensor *view_of_leaf(const op_input *input, op_layout layout, kn_tensor *leaf)
{
    int ndim = input->ndim;
    if (layout == LAYOUT_TRANSPOSED && ndim >= 2)
        return kn_transpose(leaf, ndim - 2, ndim - 1);
    if (layout == LAYOUT_STRIDED || layout == LAYOUT_TRANSPOSED || (layout == LAYOUT_OFFSET && ndim == 0))
        return kn_select(leaf, -1, 1);
    if (layout == LAYOUT_OFFSET)
        return kn_narrow(leaf, 0, 2, input->shape[0]);
    if (layout == LAYOUT_EXPANDED && ndim > 0)
        return kn_expand(leaf, ndim, input->shape);
    return leaf;
}

static int64_t count_of(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    return count;
}

int64_t op_differentiable_elements(const op_row *row, op_layout layout)
{
    int64_t total = 0;
    for (int i = 0; i < op_num_inputs(row); i++) {
        int64_t shape[KN_MAX_DIMS];
        int ndim = leaf_shape(&row->inputs[i], layout, shape);
        if (op_input_differentiable(row, i))
            total += count_of(ndim, shape);
    }
    return total;
}

static void fill_distinct(test_random *random, const op_input *input, double *values, int64_t count)
{
    double step = count > 0 ? (input->high - input->low) / (double)count : 0;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(input->low + step * ((double)i + 0.5));
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t j = (int64_t)(test_random_next(random) % (uint64_t)(i + 1));
        double kept = values[i];
        values[i] = values[j];
        values[j] = kept;
    }
}

static void scale_to_shares(const op_input *input, double *values)
{
    int64_t inner = count_of(input->ndim - 2, input->shape + 2), classes = input->shape[1];
    for (int64_t n = 0; n < input->shape[0]; n++)
        for (int64_t j = 0; j < inner; j++) {
            double total = 0, *first = values + n * classes * inner + j;
            for (int64_t c = 0; c < classes; c++)
                total += first[c * inner];
            for (int64_t c = 0; c < classes; c++)
                first[c * inner] = (float)(first[c * inner] / total);
        }
}

static void fill_values(const op_run *run, int index, double *values, int64_t count)
{
    const op_input *input = &run->row->inputs[index];
    char seed[160];
    snprintf(seed, sizeof seed, "%s input %d", run->row->name, index);
    test_random random = test_random_from(seed);
    bool defaults = input->low == 0 && input->high == 0;
    double low = defaults ? -1 : input->low, high = defaults ? 1 : input->high;
    if (input->fill == FILL_DISTINCT) {
        fill_distinct(&random, input, values, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (input->fill == FILL_WHOLE)
            values[i] = low + (double)(test_random_next(&random) % (uint64_t)(high - low));
        else if (input->fill == FILL_SHARES)
            values[i] = test_random_uniform(&random, 0.05, 1);
        else
            values[i] = test_random_uniform(&random, low, high);
    }
    if (input->fill == FILL_SHARES && run->layout == LAYOUT_PLAIN)
        scale_to_shares(input, values);
}

static kn_tensor *make_leaf(const op_run *run, int index)
{
    int64_t shape[KN_MAX_DIMS];
    const int ndim = leaf_shape(&run->row->inputs[index], run->layout, shape);
    const int64_t count = count_of(ndim, shape);
    double *values = malloc(((size_t)count + 1) * sizeof(double));
    if (!values)
        return NULL;
    fill_values(run, index, values, count);
    kn_tensor *leaf =
        tensor_of_doubles(values, ndim, shape, dtype_of_input(run, index), op_input_differentiable(run->row, index));
    free(values);
    return leaf;
}

bool op_make_leaves(const op_run *run, kn_tensor *leaves[OP_MAX_INPUTS])
{
    memset(leaves, 0, OP_MAX_INPUTS * sizeof *leaves);
    for (int i = 0; i < op_num_inputs(run->row); i++) {
        leaves[i] = make_leaf(run, i);
        if (!leaves[i])
            return false;
    }
    return true;
}

kn_tensor *op_build_from(const op_run *run, kn_tensor *const *leaves)
{
    kn_tensor *inputs[OP_MAX_INPUTS] = {NULL};
    for (int i = 0; i < op_num_inputs(run->row); i++)
        inputs[i] = view_of_leaf(&run->row->inputs[i], run->layout, leaves[i]);
    return run->row->build(inputs, run->row->params);
}

kn_tensor *op_output_gradient(const op_run *run, int ndim, const int64_t *shape, kn_dtype dtype)
{
    char seed[160];
    snprintf(seed, sizeof seed, "%s weights", run->row->name);
    test_random random = test_random_from(seed);
    int64_t count = 1;
    for (int d = 0; d < ndim; d++)
        count *= shape[d];
    double *values = malloc(((size_t)count + 1) * sizeof(double));
    for (int64_t i = 0; values && i < count; i++)
        values[i] = test_random_uniform(&random, -1, 1);
    kn_tensor *gradient = values ? tensor_of_doubles(values, ndim, shape, dtype, false) : NULL;
    free(values);
    return gradient;
}
