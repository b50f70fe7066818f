/* rt/device/query.h - asking a device what it is. The answers decide how it computes, so a device that does not answer
 * is not used: with guesses instead of answers the results could be wrong. */
#ifndef KN_RT_DEVICE_QUERY_H
#define KN_RT_DEVICE_QUERY_H

#include "rt/device/device_struct.h"

/* One device's answers. Ask all questions, then check once that all were answered. */
typedef struct kn_query {
    cl_device_id id;
    cl_int error;       /* of the first question that was not answered; CL_SUCCESS: none */
    const char *failed; /* that question's name */
} kn_query;

/* A string that the device tells, never NULL; "" after a failure. kn_query_free gives it back. */
#define kn_query_string(query, what) kn_ask_string(query, what, #what)
char *kn_ask_string(kn_query *query, cl_device_info what, const char *name);
void kn_query_free(const char *text);

/* A number of four or eight bytes; 0 after a failure. */
#define kn_query_number(query, what) kn_ask_number(query, what, #what)
uint64_t kn_ask_number(kn_query *query, cl_device_info what, const char *name);

/* The same, but 0 without a failure where the driver does not know the question (CL_INVALID_VALUE). */
#define kn_query_number_if_known(query, what) kn_ask_number_if_known(query, what, #what)
uint64_t kn_ask_number_if_known(kn_query *query, cl_device_info what, const char *name);

/* `size` bytes; all 0 after a failure. */
#define kn_query_bytes(query, what, size, to) kn_ask_bytes(query, what, size, to, #what)
void kn_ask_bytes(kn_query *query, cl_device_info what, size_t size, void *to, const char *name);

/* Is `word` one of the words of `list`, which blanks separate? */
bool kn_has_word(const char *list, const char *word);

/* device->limits; properties, extensions and quirks are known by then. */
void kn_query_limits(kn_query *query, kn_device *device);

/* The rest of device->properties: what the limits tell, and what only the user asks for: the PCI address, the UUID,
 * caches, work-group sizes; limits are known by then. */
void kn_query_properties(kn_query *query, kn_device *device);

#endif
