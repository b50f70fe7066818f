/* rt/find/ask.h - queries the OpenCL platforms again, for diagnosis. The list of devices is created once and does not
 * change. */
#pragma once

typedef struct kn_platform_answer {
    char name[256];    /* "": unknown */
    int devices;       /* number of devices */
    const char *error; /* the OpenCL error of enumerating its devices, or NULL */
} kn_platform_answer;

int kn_platform_count(void); /* 0 also if the query fails */
kn_platform_answer kn_platform_ask(int index);
