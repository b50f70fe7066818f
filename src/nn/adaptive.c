/* nn/adaptive.c - AdaptiveLogSoftmaxWithLoss. */
#include <inttypes.h>
#include <koine/index.h>
#include <koine/join.h>
#include <koine/logic.h>
#include <koine/norm.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "nn/module.h"
#include "tensor/tensor.h"

typedef struct adaptive {
    kn_module *head, *tail;                       /* a Linear, and a ModuleList of two Linears for each cluster */
    int64_t cutoffs[KN_ADAPTIVE_MAX_CUTOFFS + 1]; /* the last one is n_classes */
    int clusters;
    int64_t in_features;
} adaptive;

static int64_t shortlist_of(const adaptive *self) { return self->cutoffs[0]; }

/* The logarithms of the probabilities within cluster i. */
static kn_tensor *within(const adaptive *self, int i, kn_tensor *x)
{
    return kn_log_softmax(kn_forward(kn_module_child(self->tail, i), x), -1);
}

/* --- the loss ----------------------------------------------------------------------------------------------------- */

/* Of each class the element of the head: itself, or its cluster. Beyond the last class there is none, which the gather
 * reports. */
static kn_tensor *places_in_head(const adaptive *self, kn_tensor *target)
{
    kn_tensor *place = kn_sub_scalar(kn_to_dtype(kn_ge_scalar(target, shortlist_of(self)), KN_I64), 1);
    for (int i = 1; i <= self->clusters; i++)
        place = kn_add(place, kn_to_dtype(kn_ge_scalar(target, self->cutoffs[i]), KN_I64));
    return kn_where(kn_lt_scalar(target, shortlist_of(self)), target, kn_add_scalar(place, shortlist_of(self)));
}

/* `output` with the terms of the samples in cluster i. */
static kn_tensor *with_cluster(const adaptive *self, int i, kn_tensor *output, kn_tensor *x, kn_tensor *target)
{
    kn_tensor *is_in =
        kn_logical_and(kn_ge_scalar(target, self->cutoffs[i]), kn_lt_scalar(target, self->cutoffs[i + 1]));
    kn_tensor *found = kn_nonzero(is_in);
    if (!found || kn_size(found, 0) == 0)
        return found ? output : NULL;
    kn_tensor *rows = kn_select(found, 1, 0);
    kn_tensor *inner = kn_unsqueeze(kn_sub_scalar(kn_index_select(target, 0, rows), self->cutoffs[i]), 1);
    kn_tensor *terms = kn_gather(within(self, i, kn_index_select(x, 0, rows)), 1, inner);
    return kn_index_add(output, 0, rows, kn_select(terms, 1, 0));
}

static kn_status check_input(const char *name, const adaptive *self, const kn_tensor *x)
{
    char text[KN_DESCRIBE];
    if (x->ndim < 1 || x->ndim > 2 || x->shape[x->ndim - 1] != self->in_features)
        return kn_fail(KN_ERR_SHAPE, "%s: input must be [N, %" PRId64 "] or [%" PRId64 "], not %s", name,
                       self->in_features, self->in_features, kn_tensor_describe(text, sizeof text, x));
    return KN_OK;
}

static kn_status check(const adaptive *self, const kn_tensor *x, const kn_tensor *target)
{
    static const char name[] = "AdaptiveLogSoftmaxWithLoss";
    char of[KN_DESCRIBE], has[KN_DESCRIBE];
    KN_TRY(check_input(name, self, x));
    if (target->ndim != x->ndim - 1 || (target->ndim == 1 && target->shape[0] != x->shape[0]))
        return kn_fail(KN_ERR_SHAPE, "%s: target must have one class for each sample of input, %s, not be %s", name,
                       kn_tensor_describe(of, sizeof of, x), kn_tensor_describe(has, sizeof has, target));
    if (target->dtype != KN_I64)
        return kn_fail(KN_ERR_DTYPE, "%s: target is %s; it must be int64, the numbers of classes", name,
                       kn_dtype_name(target->dtype));
    return KN_OK;
}

static kn_status forward(kn_module *module, kn_tensor *const *inputs, kn_tensor **outputs)
{
    const adaptive *self = module->self;
    kn_tensor *x = inputs[0], *target = inputs[1];
    KN_TRY(check(self, x, target));
    const bool is_one = x->ndim == 1;
    if (is_one) {
        x = kn_unsqueeze(x, 0);
        target = kn_unsqueeze(target, 0);
    }
    kn_tensor *head = kn_log_softmax(kn_forward(self->head, x), 1);
    kn_tensor *place = kn_unsqueeze(places_in_head(self, target), 1);
    kn_tensor *output = kn_select(kn_gather(head, 1, place), 1, 0);
    for (int i = 0; i < self->clusters && output; i++)
        output = with_cluster(self, i, output, x, target);
    outputs[1] = kn_neg(kn_mean(output));
    outputs[0] = is_one ? kn_squeeze(output, 0) : output;
    return outputs[0] && outputs[1] ? KN_OK : kn_error_status();
}

/* --- all classes -------------------------------------------------------------------------------------------------- */

static kn_tensor *log_prob(const adaptive *self, kn_tensor *x)
{
    kn_tensor *parts[KN_ADAPTIVE_MAX_CUTOFFS + 1], *head = kn_log_softmax(kn_forward(self->head, x), 1);
    parts[0] = kn_narrow(head, 1, 0, shortlist_of(self));
    for (int i = 0; i < self->clusters; i++)
        parts[1 + i] = kn_add(within(self, i, x), kn_narrow(head, 1, shortlist_of(self) + i, 1));
    return kn_cat(parts, 1 + self->clusters, 1);
}

/* Of samples whose most probable element of the head is a cluster, the classes are compared. */
static kn_tensor *predict(const adaptive *self, kn_tensor *x)
{
    kn_tensor *best = kn_argmax(kn_forward(self->head, x), 1, false);
    kn_tensor *found = kn_nonzero(kn_ge_scalar(best, shortlist_of(self)));
    if (!found || kn_size(found, 0) == 0)
        return found ? best : NULL;
    kn_tensor *rows = kn_select(found, 1, 0);
    return kn_index_copy(best, 0, rows, kn_argmax(log_prob(self, kn_index_select(x, 0, rows)), 1, false));
}

static kn_tensor *apply(const char *name, kn_module *module, kn_tensor *x,
                        kn_tensor *(*function)(const adaptive *self, kn_tensor *x))
{
    if (!x)
        return NULL;
    if (!module || module->kind.forward_many != forward)
        return kn_fail_null(KN_ERR_ARGUMENT, "%s: module must be an AdaptiveLogSoftmaxWithLoss, not %s", name,
                            module ? module->type_name : "NULL");
    if (check_input(name, module->self, x) != KN_OK)
        return kn_error_make_sticky();
    const bool is_one = x->ndim == 1;
    kn_tensor *result = function(module->self, is_one ? kn_unsqueeze(x, 0) : x);
    return is_one ? kn_squeeze(result, 0) : result;
}

kn_tensor *kn_adaptive_log_softmax_log_prob(kn_module *module, kn_tensor *x)
{
    return apply("adaptive_log_softmax_log_prob", module, x, log_prob);
}

kn_tensor *kn_adaptive_log_softmax_predict(kn_module *module, kn_tensor *x)
{
    return apply("adaptive_log_softmax_predict", module, x, predict);
}

/* --- making ------------------------------------------------------------------------------------------------------- */

static kn_status check_params(const kn_nn_adaptive_log_softmax_with_loss_params *p)
{
    static const char name[] = "AdaptiveLogSoftmaxWithLoss";
    if (p->in_features < 1)
        return kn_fail(KN_ERR_ARGUMENT, "%s: in_features must be at least 1, not %" PRId64, name, p->in_features);
    if (p->n_classes < 2)
        return kn_fail(KN_ERR_ARGUMENT, "%s: n_classes must be at least 2, not %" PRId64, name, p->n_classes);
    if (!p->cutoffs || p->num_cutoffs < 1 || p->num_cutoffs > KN_ADAPTIVE_MAX_CUTOFFS)
        return kn_fail(KN_ERR_ARGUMENT, "%s: there must be 1 to %d cutoffs, not %d", name, KN_ADAPTIVE_MAX_CUTOFFS,
                       p->cutoffs ? p->num_cutoffs : 0);
    for (int i = 0; i < p->num_cutoffs; i++) {
        const int64_t least = i > 0 ? p->cutoffs[i - 1] + 1 : 1;
        if (p->cutoffs[i] < least || p->cutoffs[i] >= p->n_classes)
            return kn_fail(KN_ERR_ARGUMENT,
                           "%s: cutoffs must ascend from 1 to n_classes - 1 (%" PRId64 "), but cutoff %d is %" PRId64,
                           name, p->n_classes - 1, i, p->cutoffs[i]);
    }
    if (!(p->div_value > 0))
        return kn_fail(KN_ERR_ARGUMENT, "%s: div_value must be greater than 0, not %g", name, p->div_value);
    if ((double)p->in_features / pow(p->div_value, p->num_cutoffs) < 1)
        return kn_fail(KN_ERR_ARGUMENT,
                       "%s: in_features (%" PRId64
                       ") divided %d times by div_value (%g) leaves no feature for the last "
                       "cluster: take a smaller div_value or fewer cutoffs",
                       name, p->in_features, p->num_cutoffs, p->div_value);
    return KN_OK;
}

static kn_module *make_tail(const adaptive *self, double div_value)
{
    kn_module *clusters[KN_ADAPTIVE_MAX_CUTOFFS];
    for (int i = 0; i < self->clusters; i++) {
        const int64_t features = (int64_t)floor((double)self->in_features / pow(div_value, i + 1));
        const int64_t classes = self->cutoffs[i + 1] - self->cutoffs[i];
        clusters[i] =
            kn_nn_sequential(kn_nn_linear(.in_features = self->in_features, .out_features = features, .bias = false),
                             kn_nn_linear(.in_features = features, .out_features = classes, .bias = false));
    }
    return kn_nn_module_list_of(clusters, self->clusters);
}

kn_nn_adaptive_log_softmax_with_loss_params kn_nn_adaptive_log_softmax_with_loss_params_init(void)
{
    return (kn_nn_adaptive_log_softmax_with_loss_params){KN_NN_ADAPTIVE_LOG_SOFTMAX_WITH_LOSS_DEFAULTS};
}

kn_module *kn_nn_adaptive_log_softmax_with_loss_with(const kn_nn_adaptive_log_softmax_with_loss_params *params)
{
    const kn_nn_adaptive_log_softmax_with_loss_params p =
        params ? *params : kn_nn_adaptive_log_softmax_with_loss_params_init();
    const kn_module_kind kind = {.forward_many = forward, .signature = {.inputs = 2, .outputs = 2}, .is_layer = true};
    adaptive made = {.in_features = p.in_features};

    if (check_params(&p) != KN_OK)
        return kn_error_make_sticky();
    made.clusters = p.num_cutoffs;
    memcpy(made.cutoffs, p.cutoffs, (size_t)p.num_cutoffs * sizeof *p.cutoffs);
    made.cutoffs[p.num_cutoffs] = p.n_classes;
    kn_module *module = kn_layer_new_kind("AdaptiveLogSoftmaxWithLoss", &kind, &made, sizeof made);
    if (!module)
        return NULL;
    adaptive *self = module->self;
    kn_module *head = kn_nn_linear(.in_features = p.in_features, .out_features = shortlist_of(self) + self->clusters,
                                   .bias = p.head_bias);
    self->head = kn_module_register_module(module, "head", head);
    self->tail = self->head ? kn_module_register_module(module, "tail", make_tail(self, p.div_value)) : NULL;
    return self->tail ? module : kn_layer_failed(module);
}
