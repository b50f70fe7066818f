/* fusion_case.h - programs that run fused, unfused and in graphs, and must give the same bits. */
#pragma once

#include "support/as_gpu.h"
#include "support/check.h"
#include "support/values.h"

#define FUSION_RESULTS 8

/* Adds its results, owned as results. Inputs are made before fusion begins, by `fusion_input`. */
typedef struct fusion_run {
    kn_tensor *results[FUSION_RESULTS];
    int count;
} fusion_run;

static inline void fusion_result(fusion_run *run, kn_tensor *result)
{
    CHECK_TENSOR(result);
    run->results[run->count++] = kn_retain(result);
}

typedef void (*fusion_program)(fusion_run *run, kn_tensor *const *inputs);

/* Runs the program, whose inputs `make` gives, anew each time: without fusion, with it, and captured, and compares the
 * results and the inputs. `commands`: those of the graph; 0: any number. */
void fusion_compare(fusion_program program, void (*make)(kn_tensor *inputs[4]), int commands);

/* The parts of that; a captured program is replayed once, and the number of its commands returned. */
void fusion_run_eagerly(fusion_program program, fusion_run *run, kn_tensor *const *inputs, bool fused);
int fusion_run_captured(fusion_program program, fusion_run *run, kn_tensor *const *inputs);
void fusion_check_same(const kn_tensor *a, const kn_tensor *b);
void fusion_release(fusion_run *run);

/* Numbers that depend on the name, from -2 to 2. */
kn_tensor *fusion_input(const char *name, int ndim, const int64_t *shape, kn_dtype dtype);
