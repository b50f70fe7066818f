/* koine/koine.h - all of Koine. */
#ifndef KOINE_KOINE_H
#define KOINE_KOINE_H

#include <koine/amp.h>
#include <koine/autograd.h>
#include <koine/common.h>
#include <koine/conv.h>
#include <koine/data.h>
#include <koine/device.h>
#include <koine/device_log.h>
#include <koine/dist.h>
#include <koine/dtype.h>
#include <koine/flags.h>
#include <koine/function.h>
#include <koine/fused_optim.h>
#include <koine/generator.h>
#include <koine/graph.h>
#include <koine/init.h>
#include <koine/io.h>
#include <koine/jit.h>
#include <koine/join.h>
#include <koine/kernel.h>
#include <koine/loss.h>
#include <koine/matmul.h>
#include <koine/memory.h>
#include <koine/module.h>
#include <koine/native.h>
#include <koine/nn.h>
#include <koine/norm.h>
#include <koine/operators.h>
#include <koine/optim.h>
#include <koine/pointwise.h>
#include <koine/pool.h>
#include <koine/profiler.h>
#include <koine/random.h>
#include <koine/reduce.h>
#include <koine/shape.h>
#include <koine/sort.h>
#include <koine/status.h>
#include <koine/storage.h>
#include <koine/stream.h>
#include <koine/tensor.h>
#include <koine/train.h>
#include <koine/usage.h>
#include <koine/version.h>

#endif
