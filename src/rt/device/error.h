/* rt/device/error.h - OpenCL's error codes: their names, and which of them mean that memory ran out. */
#pragma once

#include <stdbool.h>

#include "rt/device/opencl.h"

/* "CL_OUT_OF_RESOURCES" for -5. */
const char *kn_cl_error_name(cl_int error);

bool kn_cl_is_out_of_memory(cl_int error);
