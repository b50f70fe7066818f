/* rt/device/query.h - querying a device. The answers affect how it computes, so a device that fails a query is not
 * used: with guesses the results could be wrong. */
#pragma once

#include "rt/device/device_struct.h"

/* Queries of one device. Make all queries, then check once that none failed. */
typedef struct kn_query {
    cl_device_id id;
    cl_int error;       /* of the first failed query; CL_SUCCESS: none */
    const char *failed; /* that query's name */
} kn_query;

/* A string property, never NULL; "" after a failure. Free with kn_query_free. */
#define kn_query_string(query, what) kn_ask_string(query, what, #what)
char *kn_ask_string(kn_query *query, cl_device_info what, const char *name);
void kn_query_free(const char *text);

/* A number of four or eight bytes; 0 after a failure, and without one if the driver need not know the query
 * (CL_INVALID_VALUE). */
#define kn_query_number(query, what) kn_ask_number(query, what, #what, false)
#define kn_query_number_if_known(query, what) kn_ask_number(query, what, #what, true)
uint64_t kn_ask_number(kn_query *query, cl_device_info what, const char *name, bool if_known);

/* `size` bytes; all 0 after a failure. */
#define kn_query_bytes(query, what, size, to) kn_ask_bytes(query, what, size, to, #what)
void kn_ask_bytes(kn_query *query, cl_device_info what, size_t size, void *to, const char *name);

/* The OpenCL version, 120 for 1.2; needs properties. */
int kn_query_version(const kn_device *device);

/* Sets device->limits; needs properties, extensions and quirks. */
void kn_query_limits(kn_query *query, kn_device *device);

/* Sets the rest of device->properties: those from the limits, and those for users only: PCI address, UUID, caches,
 * work-group sizes. Needs the limits. */
void kn_query_properties(kn_query *query, kn_device *device);
