/* rt/program/user_source.h - kernel sources of the program that uses the library, in addition to the files under cl/.
 *
 * A registered text has a path, "user/HASH/NAME", which is launched like any other source (kn_launch_params.source).
 * Texts are kept until the process ends, like their programs; the same text under the same name is stored once.
 * Thread-safe. */
#pragma once

#include "base/text.h"

/* A source's path and name: both live until the process ends, so they may be handed to kn_launch_params.operation. */
typedef struct kn_user_source {
    const char *path, *name;
} kn_user_source;

/* Registers `text`, which may include the library's headers ("common/koine.clh"). Diagnostics of the compiler count
 * lines from the text's last `#line`; `name` (shortened to 60 characters) stands for the source in messages.
 * `has_user_code`: not all of it was written by the library. */
kn_status kn_user_source_add(kn_user_source *source, const char *name, const char *text, bool has_user_code);

/* For rt/program/source_text.c: is this the path of a registered text, and if so, appends the text. */
bool kn_user_source_is(const char *path);
bool kn_user_source_has_user_code(const char *path);
kn_status kn_user_source_append(kn_text *text, const char *path);

/* Memory is global or constant; a kind that the compiler does not report is unknown. */
typedef enum kn_parameter_kind {
    KN_PARAMETER_UNKNOWN,
    KN_PARAMETER_MEMORY,
    KN_PARAMETER_LOCAL,
    KN_PARAMETER_VALUE
} kn_parameter_kind;

/* A kernel's parameters. The caller makes room for `room` kinds. */
typedef struct kn_parameters {
    int count, room;
    kn_parameter_kind *kinds; /* of the first `room` ones */
} kn_parameters;

/* Builds the kernel without running it and describes its parameters (unless NULL); their kinds are known only with the
 * option -cl-kernel-arg-info. A buffer argument is two parameters. */
kn_status kn_user_source_build(kn_device *device, const char *path, const char *options, const char *kernel,
                               kn_parameters *parameters);

/* Does it build? Leaves the thread's last error unchanged. */
bool kn_user_source_tries(kn_device *device, const char *path, const char *options, const char *kernel);
