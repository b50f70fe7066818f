/* koine/common.h - common to all public headers: symbol visibility, C++ linkage, forward declarations.
 *
 * All objects are opaque. An object may be used by one thread at a time unless its header says otherwise. */
#ifndef KOINE_COMMON_H
#define KOINE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(KOINE_STATIC) || !defined(__GNUC__)
#define KN_API
#else
#define KN_API __attribute__((visibility("default")))
#endif

#if defined(__GNUC__)
#define KN_PRINTF(format_index, first_arg) __attribute__((format(printf, format_index, first_arg)))
#else
#define KN_PRINTF(format_index, first_arg)
#endif

/* Guards. KN_SCOPE, KN_NO_GRAD, KN_DEVICE(device) and the like are declarations that last to the end of the enclosing
 * block, however it is left (its end, break, continue, return, goto).
 *
 *     for (int i = 0; i < steps; i++) {
 *         KN_SCOPE;
 *         if (!step())
 *             break;                       // leaves the loop and ends the scope
 *     }
 *
 * They need a compiler with the cleanup attribute (gcc, clang). With other compilers and languages, call the pair of
 * functions behind each guard. */
#if defined(__GNUC__)
/* unused: clang does not count the call as a use of the variable. */
#define KN_CLEANUP(function) __attribute__((cleanup(function), unused))
#define KN_GUARD(type, name, enter, leave) KN_CLEANUP(leave) type KN_UNIQUE(name) = enter
#endif

/* A unique name for each guard of a block. */
#define KN_UNIQUE(name) KN_UNIQUE_JOIN(name, __LINE__)
#define KN_UNIQUE_JOIN(name, line) KN_UNIQUE_PASTE(name, line)
#define KN_UNIQUE_PASTE(name, line) name##line

#ifdef __cplusplus
#define KN_BEGIN_DECLS extern "C" {
#define KN_END_DECLS }
#else
#define KN_BEGIN_DECLS
#define KN_END_DECLS
#endif

/* Optional parameters are given by name:
 *
 *     kn_dropout(x, .p = 0.1)
 *
 * Such a macro calls a plain function, kn_dropout_with, whose last argument points to a parameter struct. The same
 * without the macro, for C++ and other languages:
 *
 *     kn_dropout_params params = kn_dropout_params_init();     // the defaults
 *     params.p = 0.1;
 *     kn_dropout_with(x, &params)
 *
 * Every parameter struct kn_X_params (and kn_tensor_options, PyTorch's term) has a function kn_X_params_init(), and
 * every function that takes a pointer to one accepts NULL for the defaults. A zeroed struct, `{}` in C++, does not have
 * the defaults: start from kn_X_params_init(). The defaults are defined once, in the initialisers KN_X_DEFAULTS.
 *
 * The macros override initialisers on purpose, so the compilers' warning about that is silenced for this expression
 * only. */
#if defined(__clang__)
#define KN_OVERRIDE_BEGIN                                                                                              \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"")
#define KN_OVERRIDE_END _Pragma("clang diagnostic pop")
#else
#define KN_OVERRIDE_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")
#define KN_OVERRIDE_END _Pragma("GCC diagnostic pop")
#endif

#define KN_CALL(call)                                                                                                  \
    (__extension__({                                                                                                   \
        KN_OVERRIDE_BEGIN call;                                                                                        \
        KN_OVERRIDE_END                                                                                                \
    }))

/* For the parameter `width` (in characters) of functions that return a table as text: no limit. The default, 0, means
 * the width of the terminal on stdout (or the environment's COLUMNS if it is set), and no limit if stdout is not a
 * terminal. */
#define KN_WIDE (-1)

typedef struct kn_device kn_device;       /* an OpenCL device, or the host; lives until the process ends */
typedef struct kn_stream kn_stream;       /* an in-order queue of one device */
typedef struct kn_mem_pool kn_mem_pool;   /* a private pool of device memory */
typedef struct kn_tensor kn_tensor;       /* a reference-counted, strided, typed array */
typedef struct kn_generator kn_generator; /* a source of random numbers (koine/generator.h) */
typedef struct kn_module kn_module;       /* a layer or a network */
typedef struct kn_optim kn_optim;         /* an optimizer */
typedef struct kn_dataset kn_dataset;     /* samples by index */
typedef struct kn_loader kn_loader;       /* batches of a dataset, prepared by worker threads */
typedef struct kn_trainer kn_trainer;     /* the training loop */

#endif
