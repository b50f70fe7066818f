/* rt/rt.h - the runtime as the layers above see it: devices, streams, buffers, launches, transfers, graphs. Only src/rt
 * calls OpenCL. */
#pragma once

#include <koine/device.h>
#include <koine/graph.h>
#include <koine/stream.h>

#include "rt/clblast/gemm.h"
#include "rt/command/device_transfer.h"
#include "rt/command/launch.h"
#include "rt/command/transfer.h"
#include "rt/device/device.h"
#include "rt/find/find.h"
#include "rt/graph/capture.h"
#include "rt/memory/buffer.h"
#include "rt/stream/wait.h"
