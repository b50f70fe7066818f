/* check.c - assertions for tensor tests. */
#include "support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rt/device/device_struct.h"
#include "support/values.h"

void check_ok(bool fine, const char *what, const char *file, int line)
{
    if (fine)
        return;
    print_error("%s:%d: %s: %s\n", file, line, what, kn_error_message());
    _fail(file, line);
}

void check_values(kn_tensor *tensor, const double *expected, int64_t count, const char *what, const char *file,
                  int line)
{
    check_ok(tensor != NULL, what, file, line);
    double *values = read_doubles(tensor);
    check_ok(values != NULL, what, file, line);
    char message[400] = "";
    bool close = kn_numel(tensor) == count;
    if (!close)
        snprintf(message, sizeof message, "%lld elements, not %lld", (long long)kn_numel(tensor), (long long)count);
    else
        close = values_close(values, expected, count, (closeness){1e-6, 1e-6}, message, sizeof message);
    free(values);
    if (!close) {
        char *text = kn_to_string(tensor);
        print_error("%s:%d: %s: %s\n%s\n", file, line, what, message, text ? text : "");
        kn_free(text);
        _fail(file, line);
    }
}

void check_same_bits(const kn_tensor *a, const kn_tensor *b)
{
    size_t size, other;
    CHECK_TENSOR(a);
    CHECK_TENSOR(b);
    void *x = read_bytes(a, &size), *y = read_bytes(b, &other);
    assert_true(x && y && size == other);
    assert_memory_equal(x, y, size);
    free(x);
    free(y);
}

void check_shape(const kn_tensor *tensor, int ndim, const int64_t *shape, const char *what, const char *file, int line)
{
    check_ok(tensor != NULL, what, file, line);
    bool same = kn_ndim(tensor) == ndim;
    for (int d = 0; same && d < ndim; d++)
        same = kn_size(tensor, d) == shape[d];
    if (same)
        return;
    print_error("%s:%d: %s has the shape [", file, line, what);
    for (int d = 0; d < kn_ndim(tensor); d++)
        print_error("%s%lld", d ? ", " : "", (long long)kn_size(tensor, d));
    print_error("]\n");
    _fail(file, line);
}

void check_tensors_close(const kn_tensor *actual, const kn_tensor *expected, int64_t reduction, int number)
{
    char message[256];
    double *found = read_doubles(actual), *wanted = read_doubles(expected);
    check_ok(found && wanted && kn_numel(actual) == kn_numel(expected), "tensors to compare", __FILE__, __LINE__);
    const bool close =
        values_close(found, wanted, kn_numel(actual), closeness_of(KN_F32, reduction), message, sizeof message);
    free(found);
    free(wanted);
    if (!close)
        fail_msg("case %d: %s", number, message);
}

void check_error(kn_status status, const char *const *pieces, const char *file, int line)
{
    kn_status actual = kn_error_status();
    const char *message = kn_error_message();
    bool fine = actual == status;
    while (fine && *pieces && strstr(message, *pieces))
        pieces++;
    fine = fine && !*pieces;
    if (fine) {
        kn_error_clear();
        return;
    }
    print_error("%s:%d: the error is %s \"%s\"; expected %s with \"%s\" in it\n", file, line, kn_status_name(actual),
                message, kn_status_name(status), *pieces ? *pieces : "");
    kn_error_clear();
    _fail(file, line);
}

bool check_has_f64(void) { return kn_device_limits(kn_device_current())->has_f64; }

bool check_rounds_division(void) { return kn_device_limits(kn_device_current())->rounds_division; }

bool check_has_denormals(void)
{
    cl_device_fp_config config = 0;
    clGetDeviceInfo(kn_device_current()->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL);
    return config & CL_FP_DENORM;
}

void check_needs_f64(void)
{
    if (!check_has_f64())
        skip();
}

static uint64_t allocated_everywhere(void)
{
    uint64_t total = 0;
    for (int i = 0; i < kn_device_count(); i++) {
        kn_synchronize(kn_device_at(i));
        total += kn_memory_allocated(kn_device_at(i));
    }
    return total;
}

int check_setup(void **state)
{
    uint64_t *before = malloc(sizeof *before);
    kn_error_clear();
    *before = allocated_everywhere();
    *state = before;
    return 0;
}

int check_teardown(void **state)
{
    uint64_t before = *(uint64_t *)*state, after = allocated_everywhere();
    free(*state);
    if (kn_error_status() != KN_OK) {
        print_error("an error is still pending: %s\n", kn_error_message());
        return -1;
    }
    if (before != after) {
        print_error("device memory was %llu bytes before the test and is %llu after it\n", (unsigned long long)before,
                    (unsigned long long)after);
        return -1;
    }
    return 0;
}

void check_make_folder(const char *path)
{
    char part[1024];
    assert_true(strlen(path) < sizeof part);
    for (const char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
        memcpy(part, path, (size_t)(end - path));
        part[end - path] = '\0';
        mkdir(part, 0777);
    }
    mkdir(path, 0777);
}
