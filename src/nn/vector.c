/* nn/vector.c - a list of parameters as one vector. */
#include <koine/autograd.h>
#include <koine/join.h>
#include <koine/nn_utils.h>
#include <koine/shape.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/liveness.h"
#include "tensor/tensor.h"

static kn_status check(const char *function, kn_parameter_list parameters)
{
    if (parameters.count < 1 || parameters.tensors == NULL)
        return kn_fail(KN_ERR_ARGUMENT, "%s: there are no parameters", function);
    for (int i = 0; i < parameters.count; i++)
        KN_TRY(kn_check_tensor(function, "parameter", parameters.tensors[i]));
    return KN_OK;
}

kn_tensor *kn_parameters_to_vector(kn_parameter_list parameters)
{
    if (check("parameters_to_vector", parameters) != KN_OK)
        return kn_error_make_sticky();
    kn_tensor **flat = kn_calloc((size_t)parameters.count, sizeof *flat);
    const int depth = flat != NULL ? kn_scope_begin() : 0;
    if (depth == 0) {
        kn_free(flat);
        return kn_error_make_sticky();
    }
    for (int i = 0; i < parameters.count; i++)
        flat[i] = kn_reshape(parameters.tensors[i], 1, (const int64_t[]){kn_numel(parameters.tensors[i])});
    kn_tensor *vector = kn_cat(flat, parameters.count, 0);
    kn_free(flat);
    return kn_scope_return(depth, vector);
}

static kn_status check_vector(const kn_tensor *vector, kn_parameter_list parameters)
{
    int64_t count = 0;
    for (int i = 0; i < parameters.count; i++)
        count += kn_numel(parameters.tensors[i]);
    if (vector->ndim == 1 && kn_numel(vector) == count)
        return KN_OK;
    char text[KN_DESCRIBE];
    return kn_fail(KN_ERR_SHAPE, "vector_to_parameters: the parameters have %lld elements, but the vector is %s",
                   (long long)count, kn_tensor_describe(text, sizeof text, vector));
}

kn_status kn_vector_to_parameters(kn_tensor *vector, kn_parameter_list parameters)
{
    static const char function[] = "vector_to_parameters";
    int64_t at = 0;
    KN_TRY(check(function, parameters));
    KN_TRY(kn_check_tensor(function, "vector", vector));
    KN_TRY(check_vector(vector, parameters));
    KN_SCOPE;
    KN_NO_GRAD;
    for (int i = 0; i < parameters.count; i++) {
        kn_tensor *parameter = parameters.tensors[i], *part = kn_narrow(vector, 0, at, kn_numel(parameter));
        KN_TRY(kn_status_of(part = kn_reshape(part, parameter->ndim, parameter->shape)));
        KN_TRY(kn_copy_(parameter, part));
        at += kn_numel(parameter);
    }
    return KN_OK;
}
