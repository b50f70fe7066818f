/* rt/device/opencl.h - OpenCL's headers. No other file includes them. */
#ifndef KN_RT_DEVICE_OPENCL_H
#define KN_RT_DEVICE_OPENCL_H

#include <CL/opencl.h>

#endif
