/* rt/find/ask.h - what the OpenCL platforms answer just now, whatever came of them when the devices were looked for. For
 * those who look for what is wrong with a machine. */
#ifndef KN_RT_FIND_ASK_H
#define KN_RT_FIND_ASK_H

typedef struct kn_platform_answer {
    char name[256];    /* "": it does not tell */
    int devices;       /* how many it shows */
    const char *error; /* what asking for its devices failed with, by OpenCL's name; NULL: it did not fail */
} kn_platform_answer;

int kn_platform_count(void); /* 0 also where asking fails */
kn_platform_answer kn_platform_ask(int index);

#endif
