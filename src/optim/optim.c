/* optim/optim.c - creates and frees optimizers; code common to all of them. */
#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include <koine/autograd.h>

#include "base/error.h"
#include "base/memory.h"

static kn_status check_parameter(const char *name, kn_parameter_list list, int index)
{
    char text[KN_DESCRIBE];
    kn_tensor *tensor = list.tensors[index];
    if (tensor == NULL)
        return kn_fail_argument_null(name, "parameter");
    if (tensor->dtype != KN_F32 && tensor->dtype != KN_F64)
        return kn_fail(KN_ERR_DTYPE, "%s: parameter %d is %s; optimizers take float32 and float64", name, index,
                       kn_tensor_describe(text, sizeof text, tensor));
    if (!kn_is_leaf(tensor))
        return kn_fail(KN_ERR_ARGUMENT, "%s: parameter %d (%s) is the result of an operation, not a leaf", name, index,
                       kn_tensor_describe(text, sizeof text, tensor));
    for (int i = 0; i < index; i++) {
        if (list.tensors[i] == tensor)
            return kn_fail(KN_ERR_ARGUMENT, "%s: parameters %d and %d are the same tensor", name, i, index);
    }
    return KN_OK;
}

static kn_status check_parameters(const char *name, kn_parameter_list list)
{
    if (list.count <= 0 || list.tensors == NULL) {
        kn_fail(KN_ERR_ARGUMENT, "%s: there are no parameters to optimize", name);
        return kn_error_status(); /* a failed module constructor has left a better, sticky error */
    }
    for (int i = 0; i < list.count; i++)
        KN_TRY(check_parameter(name, list, i));
    return KN_OK;
}

static kn_status take_parameters(kn_optim *optim, kn_parameter_list list)
{
    size_t count = (size_t)list.count;
    optim->parameters = kn_calloc(count, sizeof *optim->parameters);
    optim->steps = kn_calloc(count, sizeof *optim->steps);
    optim->places = kn_calloc(count, sizeof *optim->places);
    if (optim->parameters == NULL || optim->steps == NULL || optim->places == NULL)
        return KN_ERR_MEMORY;
    for (int i = 0; i < list.count; i++)
        optim->parameters[i] = kn_retain(list.tensors[i]);
    optim->count = list.count;
    return KN_OK;
}

kn_optim *kn_optim_new(const kn_optim_algorithm *algorithm, kn_parameter_list parameters, const double *hyper)
{
    if (check_parameters(algorithm->name, parameters) != KN_OK || algorithm->check(hyper) != KN_OK)
        return kn_error_make_sticky();
    kn_optim *optim = kn_calloc(1, sizeof *optim);
    if (optim == NULL)
        return kn_error_make_sticky();
    optim->algorithm = algorithm;
    optim->num_states = algorithm->count_states(hyper);
    for (int i = 0; algorithm->hyper[i] != NULL; i++)
        optim->hyper[i] = hyper[i];
    if (take_parameters(optim, parameters) != KN_OK) {
        kn_optim_free(optim);
        return kn_error_make_sticky();
    }
    return optim;
}

void kn_optim_free_buckets(kn_optim_bucket *buckets, int count)
{
    for (int i = 0; i < count; i++) {
        for (int s = 0; s < KN_OPTIM_MAX_STATES; s++)
            kn_release(buckets[i].states[s]);
    }
    kn_free(buckets);
}

void kn_optim_free(kn_optim *optim)
{
    if (optim == NULL)
        return;
    kn_optim_forget_recorded(optim);
    kn_optim_free_buckets(optim->buckets, optim->num_buckets);
    for (int i = 0; i < optim->count; i++)
        kn_release(optim->parameters[i]);
    kn_free(optim->parameters);
    kn_free(optim->steps);
    kn_free(optim->places);
    kn_free(optim);
}

void kn_optim_zero_grad(kn_optim *optim)
{
    for (int i = 0; optim != NULL && i < optim->count; i++)
        kn_set_grad(optim->parameters[i], NULL);
}

double kn_optim_lr(const kn_optim *optim) { return optim == NULL ? 0 : optim->hyper[KN_OPTIM_LR]; }

kn_status kn_optim_set_lr(kn_optim *optim, double lr)
{
    if (optim == NULL)
        return kn_fail_argument_null("optim_set_lr", "optim");
    double hyper[KN_OPTIM_MAX_HYPER];
    memcpy(hyper, optim->hyper, sizeof hyper);
    hyper[KN_OPTIM_LR] = lr;
    KN_TRY(optim->algorithm->check(hyper));
    optim->hyper[KN_OPTIM_LR] = lr;
    return KN_OK;
}
