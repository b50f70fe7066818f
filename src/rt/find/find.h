/* rt/find/find.h - enumerating devices. */
#pragma once

#include <koine/device.h>

/* Like kn_device_open, without opening it: creates no context and uses no device memory. */
kn_status kn_device_find(kn_device **device, const char *name);

/* Enumerates all devices and fills rt/device/table.h on the first call. */
kn_status kn_devices_find(void);

/* Have the devices been enumerated? */
bool kn_devices_are_found(void);

/* A platform, queried again for diagnosis: the list of devices is made once and does not change. */
typedef struct kn_platform_answer {
    char name[256];    /* "": unknown */
    int devices;       /* number of devices */
    const char *error; /* the OpenCL error of enumerating its devices, or NULL */
} kn_platform_answer;

int kn_platform_count(void); /* 0 also if the query fails */
kn_platform_answer kn_platform_ask(int index);

/* KN_ERR_DEVICE: there is no device; says which package to install, or which variable hides them. */
kn_status kn_fail_no_device(void);
