/* rt/find/ask.h - what the OpenCL platforms answer now, for finding out what is wrong with a machine. The list of
 * devices, made once, does not change. */
#ifndef KN_RT_FIND_ASK_H
#define KN_RT_FIND_ASK_H

typedef struct kn_platform_answer {
    char name[256];    /* "": it does not tell */
    int devices;       /* how many it shows */
    const char *error; /* what asking for its devices failed with, by OpenCL's name; NULL: it did not fail */
} kn_platform_answer;

int kn_platform_count(void); /* 0 if asking fails, too */
kn_platform_answer kn_platform_ask(int index);

#endif
