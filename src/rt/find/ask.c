/* rt/find/ask.c - queries the OpenCL platforms again, for diagnosis. */
#include "rt/device/lost.h"
#include "rt/find/find.h"

int kn_platform_count(void)
{
    cl_uint count = 0;
    if (clGetPlatformIDs(0, NULL, &count) != CL_SUCCESS)
        return 0;
    return count < KN_MAX_DEVICES ? (int)count : KN_MAX_DEVICES;
}

kn_platform_answer kn_platform_ask(int index)
{
    kn_platform_answer answer = {.devices = 0};
    cl_platform_id platforms[KN_MAX_DEVICES];
    cl_uint count = 0;
    cl_int error = clGetPlatformIDs(KN_MAX_DEVICES, platforms, &count);
    if (error == CL_SUCCESS && (cl_uint)index >= count)
        error = CL_INVALID_PLATFORM;
    if (error == CL_SUCCESS) {
        if (clGetPlatformInfo(platforms[index], CL_PLATFORM_NAME, sizeof answer.name - 1, answer.name, NULL) !=
            CL_SUCCESS)
            answer.name[0] = '\0';
        count = 0;
        error = clGetDeviceIDs(platforms[index], CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    }
    if (error == CL_SUCCESS)
        answer.devices = (int)count;
    else if (error != CL_DEVICE_NOT_FOUND)
        answer.error = kn_cl_error_name(error);
    return answer;
}
