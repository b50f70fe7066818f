/* stress.h - a thread's course of random actions: its values and streams, and the possible actions. */
#pragma once

#include "rt/rt_test.h"

#include <stdatomic.h>

enum { STRESS_VALUES = 6, STRESS_STREAMS = 3 };

/* One thread's course. A value is written by one stream at a time, followed by an event that orders its readers. */
typedef struct course {
    uint64_t random;
    bool concurrent; /* otherwise everything on the default stream */
    bool profiles;   /* switches the profiler on and off */
    kn_device *device, *other;
    int64_t length;
    kn_tensor *values[STRESS_VALUES];
    kn_event *written[STRESS_VALUES];
    kn_stream *streams[STRESS_STREAMS];
    kn_mem_pool *pool;
    int problems, expected_callbacks;
    atomic_int callbacks;
    double checksum;
    char message[256];
} course;

uint32_t draw(course *c, uint32_t below);
void expect(course *c, bool fine, const char *what); /* keeps the first failure's message */
#define EXPECT(call) expect(c, (call) == KN_OK, #call)

/* Makes one of the streams current, ordered after the writers of `a` and `b`. Draws the same random numbers in both
 * modes. */
void choose_stream(course *c, int a, int b);

/* Orders the current stream after all others of the thread: for in-place changes, which earlier readers must not
 * see. */
void join_streams(course *c);

void note_written(course *c, int v);

/* Replaces value `v` by `tensor` (owned by the scope); releases the old one while others may still read it. */
void put(course *c, int v, kn_tensor *tensor);

/* The actions: with the values `a` and `b`, mostly writing value `to`. */
typedef void (*stress_choice)(course *c, int a, int b, int to);
extern const stress_choice stress_choices[];
extern const int stress_num_choices;
