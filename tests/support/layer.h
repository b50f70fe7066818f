/* support/layer.h - what the OpenCL layers of the tests share: the functions below them, answers to queries, and the
 * two functions that make a library a layer (https://github.com/KhronosGroup/OpenCL-Docs, "layers"). */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_layer.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define HIDDEN extern __attribute__((visibility("hidden")))

HIDDEN const struct _cl_icd_dispatch *below; /* the next layer's functions, or the driver's */
HIDDEN struct _cl_icd_dispatch ours;         /* the same, but for those that the layer replaces */

/* As clGetDeviceInfo and others answer. */
static inline cl_int answer(const void *value, size_t bytes, size_t size, void *to, size_t *size_ret)
{
    if (size_ret)
        *size_ret = bytes;
    if (to && size < bytes)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, bytes);
    return CL_SUCCESS;
}

static inline cl_int answer_number(cl_uint value, size_t size, void *to, size_t *size_ret)
{
    return answer(&value, sizeof value, size, to, size_ret);
}

static inline cl_int answer_text(const char *text, size_t size, void *to, size_t *size_ret)
{
    return answer(text, strlen(text) + 1, size, to, size_ret);
}

/* Defines the layer, in one of its files; `install` replaces functions of `ours`. */
#define LAYER(name, install)                                                                                           \
    const struct _cl_icd_dispatch *below;                                                                              \
    struct _cl_icd_dispatch ours;                                                                                      \
    EXPORT cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *to, size_t *size_ret)              \
    {                                                                                                                  \
        if (what == CL_LAYER_API_VERSION)                                                                              \
            return answer_number(CL_LAYER_API_VERSION_100, size, to, size_ret);                                        \
        return what == CL_LAYER_NAME ? answer_text(name, size, to, size_ret) : CL_INVALID_VALUE;                       \
    }                                                                                                                  \
    EXPORT cl_int CL_API_CALL clInitLayer(cl_uint num_entries, const cl_icd_dispatch *target,                          \
                                          cl_uint *num_entries_ret, const cl_icd_dispatch **layer)                     \
    {                                                                                                                  \
        if (num_entries < sizeof ours / sizeof ours.clGetPlatformIDs)                                                  \
            return CL_INVALID_VALUE;                                                                                   \
        below = target;                                                                                                \
        memcpy(&ours, target, sizeof ours);                                                                            \
        install();                                                                                                     \
        *num_entries_ret = sizeof ours / sizeof ours.clGetPlatformIDs;                                                 \
        *layer = &ours;                                                                                                \
        return CL_SUCCESS;                                                                                             \
    }
