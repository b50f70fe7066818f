/* rt/trace/range_tools.h - NVTX and Intel ITT: the libraries through which timeline tools receive ranges. Koine links
 * neither; it calls the one that a tool has loaded into the process. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Is there a tool? KN_TOOLS_UNKNOWN before the first search for libraries. */
enum { KN_TOOLS_UNKNOWN, KN_TOOLS_NONE, KN_TOOLS_PRESENT };
extern atomic_int kn_range_tools;
static inline bool kn_has_range_tools(void)
{
    return atomic_load_explicit(&kn_range_tools, memory_order_acquire) == KN_TOOLS_PRESENT;
}

/* Searches for the libraries: at the first range, and whenever the profiler starts, since they may be loaded later. */
void kn_range_tools_find(void);

/* Only for a thread to which kn_has_range_tools has said true, which it then does for good. */
void kn_range_tools_push(const char *name);
void kn_range_tools_pop(void);
void kn_range_tools_mark(const char *name);
/* A range that any thread may end: `number` is Koine's for it, the result NVTX's. */
uint64_t kn_range_tools_start(uint64_t number, const char *name);
void kn_range_tools_end(uint64_t number, uint64_t id);
