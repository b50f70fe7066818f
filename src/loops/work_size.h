/* loops/work_size.h - how many work-items a loop is given. */
#ifndef KN_LOOPS_WORK_SIZE_H
#define KN_LOOPS_WORK_SIZE_H

#include "rt/rt.h"

/* Local 0: the driver's choice, on CPU devices. */
typedef struct kn_work_size {
    size_t global, local;
} kn_work_size;

/* For `count` elements of cheap work: on CPU devices a few work-items per core with long loops, elsewhere enough to
 * fill the device. Kernels loop over what is left (KN_FOR). */
kn_work_size kn_work_for(const kn_limits *limits, int64_t count);

#endif
