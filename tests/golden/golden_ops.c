/* golden_ops.c - from an operation's name in the golden files to a call. Cases with "operator=" name an operator of the
 * list and its parameters; those with "op=" go through the functions below. */
#include "golden/golden_ops.h"

#include <stdio.h>
#include <string.h>

#include "ops/dispatch/params_text.h"

/* "stride=2" sets all directions, "stride=2,1" each its own. */
static void read_sizes(const golden_case *c, const char *key, int64_t *all, int64_t each[3])
{
    int64_t values[3] = {0};
    int count = golden_list(c, key, values, 3);
    if (count == 1)
        *all = values[0];
    else if (count > 1)
        memcpy(each, values, sizeof values);
}

static kn_reduction read_reduction(const golden_case *c)
{
    char text[16] = "mean";
    golden_text(c, "reduction_mode", text, sizeof text);
    return strcmp(text, "none") == 0  ? KN_REDUCTION_NONE
           : strcmp(text, "sum") == 0 ? KN_REDUCTION_SUM
                                      : KN_REDUCTION_MEAN;
}

static kn_tensor *apply_conv(const golden_case *c, const char *op, kn_tensor *const *x)
{
    static const struct {
        const char *name;
        kn_tensor *(*function)(kn_tensor *, kn_tensor *, kn_tensor *, const kn_conv_params *);
    } functions[] = {{"conv1d", kn_conv1d_with},
                     {"conv2d", kn_conv2d_with},
                     {"conv3d", kn_conv3d_with},
                     {"conv_transpose1d", kn_conv_transpose1d_with},
                     {"conv_transpose2d", kn_conv_transpose2d_with},
                     {"conv_transpose3d", kn_conv_transpose3d_with}};
    kn_conv_params params = {KN_CONV_DEFAULTS};
    char padding[16] = "";
    read_sizes(c, "stride", &params.stride, params.strides);
    read_sizes(c, "dilation", &params.dilation, params.dilations);
    read_sizes(c, "output_padding", &params.output_padding, params.output_paddings);
    golden_list(c, "padding_after", params.paddings_after, 3);
    if (golden_text(c, "padding", padding, sizeof padding) && strcmp(padding, "same") == 0)
        params.padding = KN_PADDING_SAME;
    else
        read_sizes(c, "padding", &params.padding, params.paddings);
    params.groups = golden_whole(c, "groups", 1);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(op, functions[i].name) == 0)
            return functions[i].function(x[0], x[1], x[2], &params);
    kn_error_set(KN_ERR_ARGUMENT, "the golden tests know no convolution %s", op);
    return NULL;
}

static kn_pool_params read_pool(const golden_case *c)
{
    kn_pool_params params = {KN_POOL_DEFAULTS};
    read_sizes(c, "kernel_size", &params.kernel_size, params.kernel_sizes);
    read_sizes(c, "stride", &params.stride, params.strides);
    read_sizes(c, "padding", &params.padding, params.paddings);
    read_sizes(c, "dilation", &params.dilation, params.dilations);
    params.ceil_mode = golden_whole(c, "ceil_mode", 0) != 0;
    params.count_include_pad = golden_whole(c, "count_include_pad", 1) != 0;
    params.divisor_override = golden_whole(c, "divisor_override", 0);
    return params;
}

static kn_tensor *apply_adaptive(const golden_case *c, bool average, int dims, kn_tensor *x, kn_tensor **second)
{
    int64_t n[3] = {0};
    golden_list(c, "output_size", n, 3);
    if (dims == 1)
        return average ? kn_adaptive_avg_pool1d(x, n[0]) : kn_adaptive_max_pool1d_with_indices(x, n[0], second);
    if (dims == 2)
        return average ? kn_adaptive_avg_pool2d(x, n[0], n[1])
                       : kn_adaptive_max_pool2d_with_indices(x, n[0], n[1], second);
    return average ? kn_adaptive_avg_pool3d(x, n[0], n[1], n[2])
                   : kn_adaptive_max_pool3d_with_indices(x, n[0], n[1], n[2], second);
}

/* "max_pool2d" and, with the indices as the second output, "max_pool2d_with_indices". */
static kn_tensor *apply_pool(const golden_case *c, const char *op, kn_tensor *const *x, kn_tensor **second)
{
    static kn_tensor *(*const maxima[3])(kn_tensor *, const kn_pool_params *) = {kn_max_pool1d_with, kn_max_pool2d_with,
                                                                                 kn_max_pool3d_with};
    static kn_tensor *(*const places[3])(kn_tensor *, kn_tensor **, const kn_pool_params *) = {
        kn_max_pool1d_with_indices_with, kn_max_pool2d_with_indices_with, kn_max_pool3d_with_indices_with};
    static kn_tensor *(*const averages[3])(kn_tensor *, const kn_pool_params *) = {
        kn_avg_pool1d_with, kn_avg_pool2d_with, kn_avg_pool3d_with};
    const kn_pool_params params = read_pool(c);
    const int dims = strstr(op, "1d") ? 1 : strstr(op, "2d") ? 2 : 3;
    if (strstr(op, "adaptive"))
        return apply_adaptive(c, strstr(op, "avg") != NULL, dims, x[0], second);
    if (strstr(op, "avg"))
        return averages[dims - 1](x[0], &params);
    return strstr(op, "indices") ? places[dims - 1](x[0], second, &params) : maxima[dims - 1](x[0], &params);
}

static kn_tensor *apply_classes(const golden_case *c, const char *op, kn_tensor *const *x)
{
    kn_cross_entropy_params params = {KN_CROSS_ENTROPY_DEFAULTS};
    params.weight = x[2];
    params.ignore_index = golden_whole(c, "ignore_index", -100);
    params.label_smoothing = golden_number(c, "label_smoothing", 0);
    params.reduction = read_reduction(c);
    return strcmp(op, "nll_loss") == 0 ? kn_nll_loss_with(x[0], x[1], &params)
                                       : kn_cross_entropy_with(x[0], x[1], &params);
}

static kn_tensor *apply_dims(const golden_case *c, const char *op, kn_tensor *const *x, kn_tensor **second)
{
    int64_t values[KN_MAX_DIMS];
    int dims[KN_MAX_DIMS];
    int count = golden_list(c, "dims", values, KN_MAX_DIMS);
    bool keepdim = golden_whole(c, "keepdim", 0) != 0;
    int dim = (int)golden_whole(c, "dim", 0);
    for (int i = 0; i < count; i++)
        dims[i] = (int)values[i];
    if (strcmp(op, "sum_dims") == 0)
        return kn_sum_dims(x[0], dims, count, keepdim);
    if (strcmp(op, "mean_dims") == 0)
        return kn_mean_dims(x[0], dims, count, keepdim);
    if (strcmp(op, "max_dim") == 0)
        return kn_max_dim(x[0], dim, keepdim, second);
    if (strcmp(op, "min_dim") == 0)
        return kn_min_dim(x[0], dim, keepdim, second);
    if (strcmp(op, "argmin") == 0)
        return kn_argmin(x[0], dim, keepdim);
    if (strcmp(op, "prod_dim") == 0)
        return kn_prod_dim(x[0], dim, keepdim);
    if (strcmp(op, "cumsum") == 0)
        return kn_cumsum(x[0], dim);
    if (strcmp(op, "amax") == 0)
        return kn_amax(x[0], dims, count, keepdim);
    if (strcmp(op, "amin") == 0)
        return kn_amin(x[0], dims, count, keepdim);
    if (strcmp(op, "logsumexp") == 0)
        return kn_logsumexp(x[0], dims, count, keepdim);
    if (strcmp(op, "var_dims") == 0)
        return kn_var_dims(x[0], dims, count, golden_number(c, "correction", 1), keepdim);
    if (strcmp(op, "std_dims") == 0)
        return kn_std_dims(x[0], dims, count, golden_number(c, "correction", 1), keepdim);
    if (strcmp(op, "norm") == 0)
        return kn_norm_dims(x[0], golden_number(c, "p", 2), dims, count, keepdim);
    if (strcmp(op, "softmax") == 0)
        return kn_softmax(x[0], dim);
    if (strcmp(op, "log_softmax") == 0)
        return kn_log_softmax(x[0], dim);
    return kn_argmax(x[0], dim, keepdim);
}

/* Inputs as in torch.nn.functional.batch_norm; the second result is a running estimate. */
static kn_tensor *apply_norm(const golden_case *c, const char *op, kn_tensor *const *x, kn_tensor **second)
{
    if (strcmp(op, "layer_norm") == 0) {
        int64_t shape[KN_MAX_DIMS];
        const int ndim = golden_list(c, "normalized", shape, KN_MAX_DIMS);
        return kn_layer_norm_with(
            x[0], ndim, shape,
            &(kn_layer_norm_params){.weight = x[1], .bias = x[2], .eps = golden_number(c, "eps", 1e-5)});
    }
    char which[8] = "";
    golden_text(c, "second", which, sizeof which);
    *second = strcmp(which, "mean") == 0 ? x[1] : x[2];
    return kn_batch_norm_with(x[0], &(kn_batch_norm_params){.running_mean = x[1],
                                                            .running_var = x[2],
                                                            .weight = x[3],
                                                            .bias = x[4],
                                                            .training = golden_whole(c, "training", 0) != 0,
                                                            .momentum = golden_number(c, "momentum", 0.1),
                                                            .eps = golden_number(c, "eps", 1e-5)});
}

/* Functions that compose operators. */
static bool is_composed(const char *op)
{
    return strstr(op, "_shuffle") || strstr(op, "_unshuffle") || strncmp(op, "lp_pool", 7) == 0 ||
           strcmp(op, "affine_grid") == 0 || strcmp(op, "bilinear") == 0;
}

static kn_tensor *apply_composed(const golden_case *c, const char *op, kn_tensor *const *x)
{
    static kn_tensor *(*const norms[3])(kn_tensor *, double, const kn_pool_params *) = {
        kn_lp_pool1d_with, kn_lp_pool2d_with, kn_lp_pool3d_with};
    const int64_t factor = golden_whole(c, "factor", 2);
    int64_t size[5] = {0};
    const int ndim = golden_list(c, "size", size, 5);
    const kn_pool_params params = read_pool(c);
    if (strcmp(op, "pixel_shuffle") == 0)
        return kn_pixel_shuffle(x[0], factor);
    if (strcmp(op, "pixel_unshuffle") == 0)
        return kn_pixel_unshuffle(x[0], factor);
    if (strcmp(op, "channel_shuffle") == 0)
        return kn_channel_shuffle(x[0], factor);
    if (strcmp(op, "affine_grid") == 0)
        return kn_affine_grid(x[0], ndim, size, golden_whole(c, "align_corners", 0) != 0);
    if (strcmp(op, "bilinear") == 0)
        return kn_bilinear(x[0], x[1], x[2], x[3]);
    return norms[op[7] - '1'](x[0], golden_number(c, "norm_type", 2), &params);
}

/* The words of the case that are parameters: all but "op", "operator" and "terms". */
static void parameters_of(const golden_case *c, char *words, size_t size)
{
    size_t length = 0;
    for (const char *at = c->text; *at;) {
        const size_t word = strcspn(at, " ");
        const bool is_parameter = strncmp(at, "op", 2) != 0 && strncmp(at, "terms=", 6) != 0;
        if (is_parameter)
            length += (size_t)snprintf(words + length, length < size ? size - length : 0, "%.*s ", (int)word, at);
        at += word + strspn(at + word, " ");
    }
}

/* By name, with the given parameters. */
static kn_tensor *apply_listed(const char *name, const char *words, kn_tensor *const *x, kn_tensor *more[GOLDEN_MORE])
{
    const kn_op *op = kn_op_find(name);
    const kn_op_info info = kn_op_describe(op);
    char params[sizeof(kn_ints) * 8];
    kn_tensor *results[1 + GOLDEN_MORE] = {NULL};
    int inputs = GOLDEN_MAX_INPUTS;

    if (!op) {
        kn_error_set(KN_ERR_ARGUMENT, "the golden tests know no operation %s", name);
        return NULL;
    }
    while (inputs > 0 && !x[inputs - 1])
        inputs--;
    kn_op_params_init(op, params);
    if (kn_op_params_read(op, params, words) != KN_OK)
        return NULL;
    if (kn_op_call(op, x, inputs, params, results,
                   info.num_outputs < 1 + GOLDEN_MORE ? info.num_outputs : 1 + GOLDEN_MORE) != KN_OK)
        return NULL;
    memcpy(more, results + 1, sizeof results - sizeof results[0]);
    return results[0];
}

/* Blanks are underscores. */
static kn_tensor *apply_einsum(const golden_case *c, kn_tensor *const *x, int count)
{
    char equation[64] = "";
    golden_text(c, "equation", equation, sizeof equation);
    for (char *at = equation; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return kn_einsum(equation, x, count);
}

/* Functions of products that are no operators. */
static kn_tensor *apply_product(const golden_case *c, const char *op, kn_tensor *const *x)
{
    int count = 0;
    while (count < GOLDEN_MAX_INPUTS && x[count])
        count++;
    return strcmp(op, "kron") == 0        ? kn_kron(x[0], x[1])
           : strcmp(op, "einsum") == 0    ? apply_einsum(c, x, count)
           : strcmp(op, "multi_dot") == 0 ? kn_linalg_multi_dot(x, count)
           : strcmp(op, "tensordot") == 0 ? kn_tensordot_last(x[0], x[1], (int)golden_whole(c, "n", 0))
                                          : kn_matrix_power(x[0], golden_whole(c, "n", 0));
}

static kn_tensor *apply_other(const golden_case *c, const char *op, kn_tensor *const *x, kn_tensor **more)
{
    if (strcmp(op, "linear") == 0)
        return kn_linear(x[0], x[1], x[2]);
    if (strcmp(op, "mse_loss") == 0)
        return kn_mse_loss(x[0], x[1], read_reduction(c));
    if (strcmp(op, "binary_cross_entropy_with_logits") == 0)
        return kn_binary_cross_entropy_with_logits(x[0], x[1], x[2], x[3], read_reduction(c));
    if (strcmp(op, "pow_scalar") == 0)
        return kn_pow_scalar(x[0], golden_number(c, "value", 0));
    if (strcmp(op, "clamp") == 0)
        return kn_clamp(x[0], .min = golden_number(c, "min", -INFINITY), .max = golden_number(c, "max", INFINITY));
    if (strcmp(op, "hardtanh") == 0)
        return kn_hardtanh(x[0], golden_number(c, "min", -1), golden_number(c, "max", 1));
    if (strcmp(op, "add_scalar") == 0)
        return kn_add_scalar(x[0], golden_number(c, "value", 0));
    if (strcmp(op, "mul_scalar") == 0)
        return kn_mul_scalar(x[0], golden_number(c, "value", 0));
    if (strcmp(op, "index_select") == 0)
        return kn_index_select(x[0], (int)golden_whole(c, "dim", 0), x[1]);
    if (strcmp(op, "kron") == 0 || strcmp(op, "einsum") == 0 || strcmp(op, "multi_dot") == 0 ||
        strcmp(op, "tensordot") == 0 || strcmp(op, "matrix_power") == 0)
        return apply_product(c, op, x);
    return apply_listed(op, "", x, more);
}

kn_tensor *golden_apply(const golden_case *c, kn_tensor *const *x, kn_tensor *more[GOLDEN_MORE])
{
    char op[64] = "", words[512] = "";
    if (golden_text(c, "operator", op, sizeof op)) {
        parameters_of(c, words, sizeof words);
        return apply_listed(op, words, x, more);
    }
    golden_text(c, "op", op, sizeof op);
    golden_composed composed;
    if (golden_is_composed(op, &composed))
        return composed(c, x, more);
    if (is_composed(op))
        return apply_composed(c, op, x);
    if (strstr(op, "_norm"))
        return apply_norm(c, op, x, more);
    if (strncmp(op, "conv", 4) == 0)
        return apply_conv(c, op, x);
    if (strstr(op, "_pool"))
        return apply_pool(c, op, x, more);
    if (strcmp(op, "cross_entropy") == 0 || strcmp(op, "nll_loss") == 0)
        return apply_classes(c, op, x);
    if (golden_number(c, "keepdim", -1) >= 0 || strstr(op, "softmax"))
        return apply_dims(c, op, x, more);
    return apply_other(c, op, x, more);
}
