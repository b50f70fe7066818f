/* rt/device/opencl.h - OpenCL's headers. No other file includes them. */
#pragma once

#include <CL/opencl.h>
