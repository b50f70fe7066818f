/* rt/program/user_build.c - building a user-defined kernel before its first launch. */
#include "rt/device/lost.h"
#include "rt/program/program.h"
#include "rt/program/user_source.h"
#include "rt/stream/open.h"

static kn_parameter_kind kind_of(cl_kernel kernel, cl_uint index)
{
    cl_kernel_arg_address_qualifier where;
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof where, &where, NULL) != CL_SUCCESS)
        return KN_PARAMETER_UNKNOWN;
    return where == CL_KERNEL_ARG_ADDRESS_PRIVATE ? KN_PARAMETER_VALUE
           : where == CL_KERNEL_ARG_ADDRESS_LOCAL ? KN_PARAMETER_LOCAL
                                                  : KN_PARAMETER_MEMORY;
}

kn_status kn_user_source_build(kn_device *device, const char *path, const char *options, const char *kernel,
                               kn_parameters *parameters)
{
    kn_kernel *built;
    cl_uint count = 0;
    KN_TRY(kn_device_ensure_open(device));
    KN_TRY(kn_kernel_get(&built, device, path, options, kernel, NULL));
    if (!parameters)
        return KN_OK;
    cl_int error = clGetKernelInfo(built->handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (error != CL_SUCCESS)
        return kn_cl_fail(error, device, "counting the parameters of kernel `%s`", kernel);
    parameters->count = (int)count;
    for (int i = 0; i < parameters->count && i < parameters->room; i++)
        parameters->kinds[i] = kind_of(built->handle, (cl_uint)i);
    return KN_OK;
}

bool kn_user_source_tries(kn_device *device, const char *path, const char *options, const char *kernel)
{
    KN_PRESERVE_ERROR;
    return kn_user_source_build(device, path, options, kernel, NULL) == KN_OK;
}
