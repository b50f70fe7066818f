/* rt_test.h - shared by the runtime's tests. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <koine/koine.h>

/* Fails with Koine's own message. */
#define assert_ok(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != KN_OK)                                                                                           \
            fail_msg("%s: %s", #call, kn_error_message());                                                             \
    } while (0)

/* The same for what a function has made: assert_new(stream = kn_stream_new(device)). */
#define assert_new(object) assert_ok(kn_status_of(object))

/* The thread's error message contains `part`; clears it. */
static inline void assert_message(const char *part)
{
    const char *message = kn_error_message();
    if (!strstr(message, part))
        fail_msg("the message is `%s`, without `%s`", message, part);
    kn_error_clear();
}

static inline kn_device *test_device(void)
{
    kn_device *device = kn_device_open("auto");
    assert_new(device);
    return device;
}

/* Does PoCL make two devices of one CPU here, before any other device? */
static inline bool two_cpu_devices(void)
{
    bool cpus = kn_device_count() > 1;
    for (int i = 0; i < 2 && cpus; i++)
        cpus = strncmp(kn_device_string(kn_device_at(i)), "cpu:", 4) == 0;
    return cpus;
}
