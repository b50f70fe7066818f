/* ops/dispatch/autocast.c - see autocast.h. The lists are those of torch.amp for CUDA devices; functions composed
 * of operators, such as einsum, follow those. */
#include "ops/dispatch/autocast.h"

#include <koine/autograd.h>
#include <koine/graph.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autocast.h"
#include "base/load.h"
#include "base/memory.h"

/* --- the lists, sorted -------------------------------------------------------------------------------------------- */

/* To the region's dtype: products. */
static const char *const lower[] = {
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "gru",
    "gru_cell",
    "linear",
    "lstm",
    "lstm_cell",
    "matmul",
    "mm",
    "mv",
    "prelu",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
    "scaled_dot_product_attention",
};

/* To float32. */
static const char *const full[] = {
    "acos",
    "asin",
    "binary_cross_entropy_with_logits",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "cumprod",
    "cumsum",
    "erfinv",
    "exp",
    "expm1",
    "gaussian_nll_loss",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logsumexp",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "nll_loss",
    "norm",
    "normalize",
    "poisson_nll_loss",
    "pow",
    "pow_scalar",
    "prod",
    "reciprocal",
    "rms_norm",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softplus",
    "sum",
    "tan",
    "triplet_margin_loss",
};

/* To the widest dtype of the inputs. */
static const char *const widest[] = {
    "addcdiv", "addcmul", "atan2", "cat", "dot", "grid_sample", "index_put", "scatter_add", "stack",
};

static int compare(const void *name, const void *entry) { return strcmp(name, *(const char *const *)entry); }

#define LISTS(list, name) (bsearch(name, list, sizeof list / sizeof list[0], sizeof list[0], compare) != NULL)

/* --- dtypes ------------------------------------------------------------------------------------------------------- */

static bool is_converted(const kn_tensor *tensor)
{
    return tensor && (tensor->dtype == KN_F32 || kn_dtype_is_reduced(tensor->dtype));
}

static kn_dtype widest_of(kn_tensor *const *inputs, int num_inputs)
{
    kn_dtype dtype = KN_DTYPE_DEFAULT;
    for (int i = 0; i < num_inputs; i++)
        if (is_converted(inputs[i]))
            dtype = dtype ? kn_promote_types(dtype, inputs[i]->dtype) : inputs[i]->dtype;
    return dtype;
}

kn_dtype kn_autocast_type(const kn_op *op, kn_tensor *const *inputs, int num_inputs)
{
    const kn_dtype region = kn_autocast_dtype();
    if (!region)
        return KN_DTYPE_DEFAULT;
    const kn_dtype dtype = LISTS(lower, op->name)    ? region
                           : LISTS(full, op->name)   ? KN_F32
                           : LISTS(widest, op->name) ? widest_of(inputs, num_inputs)
                                                     : KN_DTYPE_DEFAULT;
    for (int i = 0; i < num_inputs; i++)
        if (is_converted(inputs[i]) && inputs[i]->dtype != dtype)
            return dtype;
    return KN_DTYPE_DEFAULT;
}

/* --- parameters, which are converted once per region -------------------------------------------------------------- */

typedef struct entry {
    kn_tensor *parameter, *converted; /* a reference to each */
    unsigned version;
    struct entry *next;
} entry;

static _Thread_local entry *entries;

static void drop_entries(void)
{
    while (entries) {
        entry *first = entries;
        entries = first->next;
        kn_release(first->parameter);
        kn_release(first->converted);
        kn_free(first);
    }
}

KN_AT_LOAD register_left(void) { kn_autocast_set_left(drop_entries); }

/* A captured graph must convert parameters itself at each replay. */
static bool is_kept(const kn_tensor *tensor)
{
    return kn_grad_enabled() && !tensor->whole && kn_is_leaf(tensor) && kn_requires_grad(tensor) &&
           !kn_is_current_stream_capturing(kn_device_of(tensor));
}

static kn_tensor *find_entry(const kn_tensor *parameter, kn_dtype dtype)
{
    for (const entry *e = entries; e; e = e->next)
        if (e->parameter == parameter && e->converted->dtype == dtype && e->version == parameter->storage->version)
            return e->converted;
    return NULL;
}

static kn_tensor *convert_parameter(kn_tensor *parameter, kn_dtype dtype)
{
    kn_tensor *converted = find_entry(parameter, dtype);
    if (converted)
        return converted;
    converted = kn_to_dtype(parameter, dtype);
    entry *e = converted ? kn_malloc(sizeof *e) : NULL;
    if (!e)
        return NULL;
    *e = (entry){kn_retain(parameter), kn_retain(converted), parameter->storage->version, entries};
    entries = e;
    return converted;
}

kn_status kn_autocast_inputs(kn_tensor **inputs, int num_inputs, kn_dtype dtype)
{
    for (int i = 0; i < num_inputs; i++) {
        if (!is_converted(inputs[i]) || inputs[i]->dtype == dtype)
            continue;
        inputs[i] = is_kept(inputs[i]) ? convert_parameter(inputs[i], dtype) : kn_to_dtype(inputs[i], dtype);
        if (!inputs[i])
            return kn_error_status();
    }
    return KN_OK;
}
