/* support/odd_driver/limits.c - what the devices say of their limits. */
#include "support/odd_driver/odd.h"

#define KIB ((cl_ulong)1 << 10)
#define MIB ((cl_ulong)1 << 20)

/* The extensions that OpenCL 1.2 has made part of itself. */
#define OWN_EXTENSIONS                                                                                                 \
    "cl_khr_byte_addressable_store cl_khr_global_int32_base_atomics cl_khr_global_int32_extended_atomics "             \
    "cl_khr_local_int32_base_atomics cl_khr_local_int32_extended_atomics"

static bool is_vector_width(cl_device_info what)
{
    return (what >= CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR && what <= CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE) ||
           what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF ||
           (what >= CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR && what <= CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF);
}

static bool is_of_double_or_half(cl_device_info what)
{
    return what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE || what == CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF ||
           what == CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE || what == CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF;
}

/* What the device says as an unsigned number, of `bytes`; false: the truth. */
static bool find_number(cl_device_id device, cl_device_info what, cl_ulong *number, size_t *bytes)
{
    *bytes = sizeof(cl_ulong);
    if (what == CL_DEVICE_LOCAL_MEM_SIZE && odd[ODD_LOCAL].is_on)
        return *number = odd[ODD_LOCAL].number * KIB, true;
    if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE && odd[ODD_ALLOCATION].is_on)
        return *number = odd[ODD_ALLOCATION].number * MIB, true;
    if (what == CL_DEVICE_GLOBAL_MEM_CACHE_SIZE && odd[ODD_CACHE].is_on)
        return *number = odd[ODD_CACHE].number, true;
    if (what == CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE && odd[ODD_BARE].is_on)
        return *number = 64 * KIB, true;
    if ((what == CL_DEVICE_DOUBLE_FP_CONFIG || what == CL_DEVICE_HALF_FP_CONFIG) && odd[ODD_BARE].is_on)
        return *number = 0, true;
    if (what == CL_DEVICE_SINGLE_FP_CONFIG && odd[ODD_INEXACT].is_on) {
        below->clGetDeviceInfo(device, what, sizeof *number, number, NULL);
        *number &= ~(cl_ulong)(CL_FP_DENORM | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
        return true;
    }
    *bytes = sizeof(size_t);
    if (what == CL_DEVICE_MAX_PARAMETER_SIZE && odd[ODD_ARGUMENTS].is_on)
        return *number = odd[ODD_ARGUMENTS].number, true;
    if (what == CL_DEVICE_MAX_WORK_GROUP_SIZE && odd[ODD_STRICT].is_on)
        return *number = 1024, true;
    *bytes = sizeof(cl_uint);
    if (is_of_double_or_half(what) && odd[ODD_BARE].is_on)
        return *number = 0, true;
    if (what == CL_DEVICE_MAX_COMPUTE_UNITS && odd[ODD_UNITS].is_on)
        return *number = odd[ODD_UNITS].number, true;
    if (is_vector_width(what) && odd[ODD_WIDTH].is_on)
        return *number = odd[ODD_WIDTH].number, true;
    if (what == CL_DEVICE_MEM_BASE_ADDR_ALIGN && odd[ODD_ALIGN].is_on)
        return *number = odd[ODD_ALIGN].number, true;
    return false;
}

bool odd_answer_limit(cl_device_id device, cl_device_info what, size_t size, void *to, size_t *size_ret, cl_int *error)
{
    static const size_t items[] = {1024, 1024, 64};
    cl_ulong number;
    size_t bytes;
    if (what == CL_DEVICE_MAX_WORK_ITEM_SIZES && odd[ODD_STRICT].is_on)
        return *error = answer(items, sizeof items, size, to, size_ret), true;
    if (what == CL_DEVICE_EXTENSIONS && odd[ODD_BARE].is_on)
        return *error = answer_text(OWN_EXTENSIONS, size, to, size_ret), true;
    if (!find_number(device, what, &number, &bytes))
        return false;
    *error = answer(&number, bytes, size, to, size_ret); /* little-endian */
    return true;
}
