/* koine/common.h - what every public header needs: symbol visibility, C++ linkage, forward declarations.
 *
 * All objects are opaque. A pointer to one is used by one thread at a time unless its header says otherwise. */
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

/* Guards. KN_SCOPE, KN_NO_GRAD, KN_DEVICE(device) and their like are declarations: they hold from where they stand to
 * the end of the enclosing block, however it is left (its end, break, continue, return, goto).
 *
 *     for (int i = 0; i < steps; i++) {
 *         KN_SCOPE;
 *         if (!step())
 *             break;                       // leaves the loop, and the scope with it
 *     }
 *
 * They need a compiler that calls a function when a variable goes out of scope (gcc, clang). With others, and from
 * other languages, call the pair of functions behind each guard. */
#if defined(__GNUC__)
/* unused: clang does not count the call as a use of the variable. */
#define KN_CLEANUP(function) __attribute__((cleanup(function), unused))
#define KN_GUARD(type, name, enter, leave) KN_CLEANUP(leave) type KN_UNIQUE(name) = enter
#endif

/* A name that guards of one block do not share. */
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
 * Such a macro calls a plain function, kn_dropout_with, whose last argument points to a struct of parameters. The same
 * without the macro, for C++ and other languages:
 *
 *     kn_dropout_params params = kn_dropout_params_init();     // the defaults
 *     params.p = 0.1;
 *     kn_dropout_with(x, &params)
 *
 * Every struct of parameters kn_X_params (some are called kn_X_options) has its kn_X_params_init(), and every function
 * that takes a pointer to one takes NULL for the defaults. A struct of zeros, `{}` in C++, is not the defaults: start
 * from kn_X_params_init(). What the defaults are stands once, in the initialisers KN_X_DEFAULTS.
 *
 * Overriding them is the whole point of the macros, so the compilers' warning about it is silenced for exactly this
 * expression. */
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

/* For parameters called `width`, in characters, of functions that return a table as text: all of it, however wide.
 * Their default, 0, is the width of the terminal that stdout is (the environment's COLUMNS if it is set); where stdout
 * is no terminal, all of it too. */
#define KN_WIDE (-1)

typedef struct kn_device kn_device;     /* an OpenCL device, or the host; lives until the process ends */
typedef struct kn_stream kn_stream;     /* an in-order queue of one device */
typedef struct kn_mem_pool kn_mem_pool; /* a pool of device memory apart from the device's own */
typedef struct kn_tensor kn_tensor;     /* a reference-counted, strided, typed array */
typedef struct kn_module kn_module;     /* a layer or a network */
typedef struct kn_optim kn_optim;       /* an optimizer */
typedef struct kn_dataset kn_dataset;   /* samples by index */
typedef struct kn_loader kn_loader;     /* batches of a dataset, prepared by worker threads */
typedef struct kn_trainer kn_trainer;   /* the training loop with its extras */

#endif
