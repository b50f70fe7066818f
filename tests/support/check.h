/* support/check.h - cmocka, with assertions for tensor tests. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <koine/koine.h>

/* Checks that the call returned KN_OK / the expression is not NULL; otherwise fails the test with the library's
 * message. */
#define CHECK_OK(call) check_ok((call) == KN_OK, #call, __FILE__, __LINE__)
#define CHECK_NEW(object) check_ok((object) != NULL, #object, __FILE__, __LINE__)
#define CHECK_TENSOR(tensor) check_ok((tensor) != NULL, #tensor, __FILE__, __LINE__)

/* The tensor's elements, in row-major order, are exactly these numbers (floats that are not integers: within 1e-6). */
#define CHECK_VALUES(tensor, ...)                                                                                      \
    check_values(tensor, (const double[]){__VA_ARGS__}, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),   \
                 #tensor, __FILE__, __LINE__)

#define CHECK_SHAPE(tensor, ...) check_shape(tensor, KN_SHAPE(__VA_ARGS__), #tensor, __FILE__, __LINE__)
#define CHECK_DTYPE(tensor, dtype)                                                                                     \
    check_ok(kn_dtype_of(tensor) == (dtype), #tensor " has dtype " #dtype, __FILE__, __LINE__)

/* The thread's last error has this status and its message contains all of these pieces. Clears the error. */
#define CHECK_ERROR(status, ...) check_error(status, (const char *const[]){__VA_ARGS__, NULL}, __FILE__, __LINE__)

void check_ok(bool fine, const char *what, const char *file, int line);
void check_values(kn_tensor *tensor, const double *expected, int64_t count, const char *what, const char *file,
                  int line);
void check_shape(const kn_tensor *tensor, int ndim, const int64_t *shape, const char *what, const char *file, int line);
void check_same_bits(const kn_tensor *a, const kn_tensor *b);
/* float32 tensors whose elements are sums of `reduction` terms; `number`, of a case, is named by the message. */
void check_tensors_close(const kn_tensor *actual, const kn_tensor *expected, int64_t reduction, int number);
void check_error(kn_status status, const char *const *pieces, const char *file, int line);

/* Creates a folder, and those above it. */
void check_make_folder(const char *path);

/* Set-up and tear-down of a test: check that no error is pending before or after, and that device memory use is
 * unchanged. */
int check_setup(void **state);
int check_teardown(void **state);
#define TEST(function) cmocka_unit_test_setup_teardown(function, check_setup, check_teardown)

/* Of the current device: float64 arithmetic, subnormal numbers of float32, and its division and square root rounded
 * correctly where a program asks for that. */
bool check_has_f64(void);
bool check_has_denormals(void);
bool check_rounds_division(void);

/* Skips the test where the device has no float64 arithmetic. Not within a scope, which would stay open. */
void check_needs_f64(void);

/* Each test's body runs in a scope. TENSOR_TEST_F64 is for tests that compute in float64. */
#define TENSOR_TEST(name) TENSOR_TEST_AFTER(name, (void)0)
#define TENSOR_TEST_F64(name) TENSOR_TEST_AFTER(name, check_needs_f64())
#define TENSOR_TEST_AFTER(name, preparation)                                                                           \
    static void name##_body(void);                                                                                     \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        preparation;                                                                                                   \
        KN_SCOPE;                                                                                                      \
        name##_body();                                                                                                 \
    }                                                                                                                  \
    static void name##_body(void)
