/* loops/fusion_parts.h - the problems noted on a stream, shared by fusion.c (which and when), fusion_graph.c (what they
 * read), fusion_run.c (which values a kernel computes), fusion_kernel.c (the kernel) and fusion_code.c (its code). */
#pragma once

#include <pthread.h>
#include <string.h>

#include "base/threads.h"
#include "loops/fusion.h"
#include "rt/stream/deferral.h"

#define KN_FUSION_PARTS 48    /* noted at a time */
#define KN_FUSION_MEMBERS 32  /* in one kernel */
#define KN_FUSION_OPERANDS 16 /* in its memory: OpenCL guarantees 1024 bytes of arguments, which are two thirds plan */

typedef struct kn_part kn_part;

/* Where a part's input comes from: an output of another part, or memory if that is NULL. */
typedef struct kn_part_link {
    kn_part *part;
    int output;
} kn_part_link;

/* A noted problem. An output's buffer is NULL once it is freed. */
struct kn_part {
    kn_pointwise_problem p;
    kn_part_link from[KN_POINTWISE_INPUTS];
    bool wanted[KN_POINTWISE_OUTPUTS]; /* its place is to have this value, and has not yet */
    bool chosen[KN_POINTWISE_OUTPUTS]; /* to be written now */
    bool stores[KN_POINTWISE_OUTPUTS]; /* written by the kernel in the making */
    bool member;                       /* of the kernel in the making */
    bool marked;                       /* by the walk over the graph at hand */
    kn_vector_style style;
    int runs; /* kernels that have computed it */
};

typedef struct kn_claim {
    kn_buffer *buffer;
    bool freed; /* by its owner: free it when no part reads it */
} kn_claim;

typedef struct kn_fusion {
    kn_deferral deferral; /* first: the stream keeps its address */
    kn_stream *stream;
    kn_mutex lock;
    atomic_bool is_running; /* by `runner`, which holds the lock */
    _Atomic(pthread_t) runner;
    kn_part *parts[KN_FUSION_PARTS]; /* in the order of the calls */
    int count;
    kn_part *fresh; /* being added: not among them yet */
    kn_claim *claims;
    int num_claims, claims_capacity;
} kn_fusion;

/* Part n of count + 1: the last is the fresh one, or NULL. */
static inline kn_part *kn_fusion_part(const kn_fusion *f, int n) { return n < f->count ? f->parts[n] : f->fresh; }

static inline bool kn_fusion_any(const bool values[KN_POINTWISE_OUTPUTS])
{
    return memchr(values, true, KN_POINTWISE_OUTPUTS * sizeof *values) != NULL;
}

static inline bool kn_part_reads_memory(const kn_part *part, int input)
{
    return part->p.inputs[input].dtype && !part->from[input].part;
}

/* --- fusion_graph.c ----------------------------------------------------------------------------------------------- */

bool kn_fusion_same_shape(const kn_pointwise_problem *a, const kn_pointwise_problem *b);

/* May they share memory? */
bool kn_fusion_overlap(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                       const kn_pointwise_problem *of_b);

/* Have they the same elements? */
bool kn_fusion_is_one_place(const kn_operand *a, const kn_pointwise_problem *of_a, const kn_operand *b,
                            const kn_pointwise_problem *of_b);

/* Makes the part, and all that it is computed from, members of the kernel. */
void kn_fusion_add_member(kn_fusion *f, kn_part *part);

/* Is the part rather computed again than written? */
bool kn_fusion_is_cheap(kn_fusion *f, kn_part *part);

/* Does the computation of its values read memory that overlaps the operand? NULL `p`: that is in its buffer. */
bool kn_fusion_reads(kn_fusion *f, kn_part *part, const kn_operand *operand, const kn_pointwise_problem *p);

/* Drops the parts that no wanted value needs. */
void kn_fusion_prune(kn_fusion *f);

/* After a failure nothing stays noted: what was to be written has no values, as after a launch that failed. */
void kn_fusion_drop(kn_fusion *f);

/* --- fusion_run.c ------------------------------------------------------------------------------------------------- */

void kn_fusion_begin_kernel(kn_fusion *f);

/* Writes the chosen values; all that are wanted. */
kn_status kn_fusion_run_chosen(kn_fusion *f);
kn_status kn_fusion_run_all(kn_fusion *f);

/* Is the calling thread running noted problems? */
bool kn_fusion_runs_here(kn_fusion *f);

/* Of the deferral. */
kn_status kn_fusion_enqueue(kn_deferral *deferral, const kn_buffer *const *used, int count);
bool kn_fusion_keeps(kn_deferral *deferral, kn_buffer *freed);

/* --- fusion_kernel.c ---------------------------------------------------------------------------------------------- */

/* Do the members make a kernel within the limits? */
bool kn_fusion_fits(kn_fusion *f);

/* Enqueues the members as one kernel, or one by one if that does not build. */
kn_status kn_fusion_run(kn_fusion *f);
