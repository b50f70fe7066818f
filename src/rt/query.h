/* rt/query.h - asking a device what it is. */
#ifndef KN_RT_QUERY_H
#define KN_RT_QUERY_H

#include <CL/cl.h>

#include "rt/internal.h"

/* A string that the device tells, never NULL: "" when the driver does not answer or memory is short. Lives as long as
 * the process. */
char *kn_query_string(cl_device_id id, cl_device_info what);

/* A number of four or eight bytes; 0 when the driver does not answer. */
uint64_t kn_query_number(cl_device_id id, cl_device_info what);

/* Is `word` one of the words of `list`, which blanks separate? */
bool kn_has_word(const char *list, const char *word);

/* What only the user asks for: the PCI address, the UUID, caches, work-group sizes; extensions and limits are known by
 * then. */
void kn_query_properties(kn_device *device);

#endif
