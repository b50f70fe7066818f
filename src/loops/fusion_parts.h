/* loops/fusion_parts.h - the problems noted on a stream, shared by fusion.c (which and when) and fusion_kernel.c (the
 * kernel). */
#pragma once

#include <pthread.h>

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

/* Do the members make a kernel within the limits? */
bool kn_fusion_fits(kn_fusion *f);

/* Enqueues the members as one kernel, or one by one if that does not build. */
kn_status kn_fusion_run(kn_fusion *f);
