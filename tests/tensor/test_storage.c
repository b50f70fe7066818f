/* test_storage.c - storages, tensors on them, as_strided and views of other dtypes, addresses, resizing. */
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static kn_tensor *counted(int64_t n) { return kn_arange(0, (double)n, 1, .dtype = KN_F32); }

/* --- tensors on a storage ----------------------------------------------------------------------------------------- */

TENSOR_TEST(a_storage_carries_several_tensors)
{
    kn_storage *storage = kn_storage_new(48, NULL);
    assert_non_null(storage);
    assert_int_equal(kn_storage_bytes(storage), 48);
    assert_ptr_equal(kn_storage_device(storage), kn_device_current());
    kn_tensor *bytes = kn_tensor_from_storage(storage, KN_U8, KN_SHAPE(48), NULL, 0);
    kn_tensor *matrix = kn_tensor_from_storage(storage, KN_F32, KN_SHAPE(2, 3), (const int64_t[]){4, 1}, 1);
    CHECK_TENSOR(kn_fill_(bytes, 0));
    CHECK_TENSOR(kn_fill_(matrix, 1));
    CHECK_VALUES(kn_tensor_from_storage(storage, KN_F32, KN_SHAPE(12), NULL, 0), 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0);
    CHECK_VALUES(kn_tensor_from_storage(storage, KN_I32, KN_SHAPE(2), NULL, 0), 0, 0x3f800000);
    assert_int_equal(kn_storage_offset(matrix), 1);
    kn_storage_release(storage); /* the tensors keep it */
    CHECK_VALUES(matrix, 1, 1, 1, 1, 1, 1);
}

TENSOR_TEST(a_storage_outlives_its_tensors_and_counts_changes)
{
    kn_tensor *x = counted(4), *half = kn_narrow(x, 0, 2, 2);
    kn_storage *storage = kn_storage_of(half);
    const unsigned version = kn_storage_version(storage);
    CHECK_TENSOR(kn_mul_scalar_(half, 2));
    assert_int_equal(kn_storage_version(storage), version + 1);
    CHECK_VALUES(kn_tensor_from_storage(storage, KN_F32, KN_SHAPE(4), NULL, 0), 0, 1, 4, 6);
    kn_storage *again = kn_storage_retain(storage);
    kn_storage_release(storage);
    kn_storage_release(again);
    kn_storage *nothing = kn_storage_new(0, NULL), *host = kn_storage_new(8, kn_device_host());
    CHECK_SHAPE(kn_tensor_from_storage(nothing, KN_F32, KN_SHAPE(0, 3), NULL, 0), 0, 3);
    assert_non_null(kn_data(kn_tensor_from_storage(host, KN_I64, KN_SCALAR, NULL, 0)));
    kn_storage_release(nothing);
    kn_storage_release(host);
}

#define REFUSED(status, piece, ...)                                                                                    \
    do {                                                                                                               \
        assert_null(kn_tensor_from_storage(__VA_ARGS__));                                                              \
        CHECK_ERROR(status, "kn_tensor_from_storage", piece);                                                          \
    } while (0)

TENSOR_TEST(layouts_that_do_not_fit_are_refused)
{
    kn_storage *s = kn_storage_new(40, NULL);
    const int64_t one[] = {1}, minus[] = {-1}, large[] = {INT64_MAX / 4}, far[] = {INT64_MAX},
                  two[] = {INT64_MAX / 64, 1};
    REFUSED(KN_ERR_ARGUMENT, "`storage` is NULL", NULL, KN_F32, KN_SHAPE(1), NULL, 0);
    REFUSED(KN_ERR_ARGUMENT, "`shape` is NULL", s, KN_F32, 1, NULL, NULL, 0);
    REFUSED(KN_ERR_ARGUMENT, "11 elements from offset 0", s, KN_F32, KN_SHAPE(11), NULL, 0);
    REFUSED(KN_ERR_ARGUMENT, "room for 10 of float32 (40 bytes)", s, KN_F32, KN_SHAPE(10), NULL, 1);
    REFUSED(KN_ERR_ARGUMENT, "beyond the storage", s, KN_F32, KN_SHAPE(6), (const int64_t[]){2}, 0);
    REFUSED(KN_ERR_ARGUMENT, "beyond the storage", s, KN_F32, KN_SHAPE(0), NULL, 11);
    REFUSED(KN_ERR_ARGUMENT, "beyond the storage", s, KN_F32, KN_SCALAR, NULL, INT64_MAX);
    REFUSED(KN_ERR_ARGUMENT, "offset -1 is negative", s, KN_F32, KN_SHAPE(1), one, -1);
    REFUSED(KN_ERR_ARGUMENT, "stride -1 of dimension 0 is negative", s, KN_F32, KN_SHAPE(2), minus, 5);
    REFUSED(KN_ERR_ARGUMENT, "stride", s, KN_F32, KN_SHAPE(9), large, 0);
    REFUSED(KN_ERR_ARGUMENT, "too large", s, KN_F32, KN_SHAPE(1), far, 0);
    REFUSED(KN_ERR_ARGUMENT, "too large", s, KN_F32, KN_SHAPE(0), far, 0);
    REFUSED(KN_ERR_ARGUMENT, "beyond the storage", s, KN_F32, KN_SHAPE(4, 2), two, 0);
    REFUSED(KN_ERR_SHAPE, "-2", s, KN_F32, KN_SHAPE(-2), NULL, 0);
    REFUSED(KN_ERR_SHAPE, "9", s, KN_F32, KN_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), NULL, 0);
    REFUSED(KN_ERR_SHAPE, "too large to count", s, KN_F32, KN_SHAPE(INT64_MAX, INT64_MAX), NULL, 0);
    REFUSED(KN_ERR_DTYPE, "77 is not a dtype", s, (kn_dtype)77, KN_SHAPE(1), NULL, 0);
    REFUSED(KN_ERR_DTYPE, "is not a dtype", s, KN_DTYPE_DEFAULT, KN_SHAPE(1), NULL, 0);
    kn_storage_release(s);
}

TENSOR_TEST(null_is_no_storage)
{
    kn_storage_release(NULL);
    assert_null(kn_storage_retain(NULL));
    assert_true(kn_storage_bytes(NULL) == 0 && kn_storage_offset(NULL) == 0 && kn_storage_version(NULL) == 0);
    assert_true(kn_storage_address(NULL) == 0 && kn_tensor_address(NULL) == 0);
    assert_null(kn_storage_device(NULL));
    assert_null(kn_storage_of(NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_storage_of", "`tensor` is NULL");
    assert_int_equal(kn_storage_resize(NULL, 3), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_storage_resize", "`storage` is NULL");
    assert_null(kn_storage_new(SIZE_MAX, NULL));
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_storage_new", "more than the maximum");
}

/* --- as_strided --------------------------------------------------------------------------------------------------- */

TENSOR_TEST(as_strided_shows_any_part)
{
    kn_tensor *x = counted(10), *part = kn_narrow(x, 0, 4, 3);
    CHECK_VALUES(kn_as_strided(x, KN_SHAPE(3, 2), (const int64_t[]){1, 3}, 2), 2, 5, 3, 6, 4, 7);
    CHECK_VALUES(kn_as_strided(part, KN_SHAPE(3), (const int64_t[]){4}, 1), 1, 5, 9); /* of the whole storage */
    CHECK_VALUES(kn_as_strided(part, KN_SCALAR, NULL, kn_storage_offset(part)), 4);
    kn_tensor *diagonal = kn_as_strided(x, KN_SHAPE(3), (const int64_t[]){4}, 0);
    CHECK_TENSOR(kn_fill_(diagonal, -1));
    CHECK_VALUES(x, -1, 1, 2, 3, -1, 5, 6, 7, -1, 9);
}

TENSOR_TEST_F64(windows_sum_their_gradients)
{
    kn_tensor *x = kn_arange(0, 7, 1, .dtype = KN_F64, .requires_grad = true);
    kn_tensor *windows = kn_as_strided(x, KN_SHAPE(3, 3), (const int64_t[]){2, 1}, 0);
    CHECK_VALUES(windows, 0, 1, 2, 2, 3, 4, 4, 5, 6);
    CHECK_OK(kn_backward(kn_sum(kn_mul_scalar(windows, 10))));
    CHECK_VALUES(kn_grad(x), 10, 10, 20, 10, 20, 10, 10); /* as PyTorch */
}

TENSOR_TEST_F64(what_lies_outside_of_x_has_no_gradient)
{
    kn_tensor *whole = kn_arange(0, 6, 1, .dtype = KN_F64), *x = kn_detach(kn_narrow(whole, 0, 2, 2));
    CHECK_OK(kn_set_requires_grad(x, true));
    kn_tensor *y = kn_as_strided(x, KN_SHAPE(3), (const int64_t[]){2}, 0); /* elements 0, 2, 4 */
    CHECK_OK(kn_backward(kn_sum(kn_mul(y, y))));
    CHECK_VALUES(kn_grad(x), 4, 0);
}

/* A change of a view shows in its base and in the gradient, also where the view reaches beyond what x shows. */
TENSOR_TEST_F64(changes_in_place_are_recorded)
{
    kn_tensor *x = kn_arange(0, 6, 1, .dtype = KN_F64, .requires_grad = true), *y = kn_mul_scalar(x, 1);
    kn_tensor *odd = kn_as_strided(y, KN_SHAPE(3), (const int64_t[]){2}, 1);
    CHECK_TENSOR(kn_mul_scalar_(odd, 5));
    CHECK_VALUES(y, 0, 5, 2, 15, 4, 25);
    CHECK_OK(kn_backward(kn_sum(y)));
    CHECK_VALUES(kn_grad(x), 1, 5, 1, 5, 1, 5);
}

TENSOR_TEST(as_strided_refuses)
{
    kn_tensor *x = counted(10), *host = kn_to(x, kn_device_host());
    const int64_t one[] = {1}, minus[] = {-1};
    assert_null(kn_as_strided(NULL, KN_SHAPE(1), one, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "`x` is NULL");
    assert_null(kn_as_strided(x, 1, NULL, one, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "`shape` is NULL");
    assert_null(kn_as_strided(x, KN_SHAPE(1), NULL, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "`strides` is NULL");
    assert_null(kn_as_strided(x, -1, one, one, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "-1 values");
    assert_null(kn_as_strided(x, 9, (const int64_t[9]){0}, (const int64_t[9]){0}, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "9 values");
    assert_null(kn_as_strided(x, KN_SHAPE(11), one, 0));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "room for 10 of float32");
    assert_null(kn_as_strided(x, KN_SHAPE(2), minus, 5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "negative");
    assert_null(kn_as_strided(x, KN_SHAPE(2), one, -5));
    CHECK_ERROR(KN_ERR_ARGUMENT, "as_strided", "negative");
    assert_null(kn_as_strided(host, KN_SHAPE(2), one, 0));
    CHECK_ERROR(KN_ERR_DEVICE, "as_strided", "on the host");
    kn_tensor *windows = kn_as_strided(x, KN_SHAPE(3, 3), (const int64_t[]){2, 1}, 0);
    assert_null(kn_mul_scalar_(windows, 2)); /* which of the equal places would be right? */
    CHECK_ERROR(KN_ERR_STATE, "share memory");
    kn_tensor *leaf = kn_set_requires_grad(windows, true) == KN_OK ? windows : NULL;
    assert_null(kn_as_strided(leaf, KN_SHAPE(2), one, 0));
    CHECK_ERROR(KN_ERR_STATE, "as_strided", "share memory", "kn_clone");
}

/* --- other dtypes ------------------------------------------------------------------------------------------------- */

TENSOR_TEST(bytes_as_another_dtype)
{
    kn_tensor *x = kn_from_data(((float[]){1, -2, 0, 3}), KN_SHAPE(2, 2));
    kn_tensor *bits = kn_view_dtype(x, KN_I32), *halves = kn_view_dtype(x, KN_F16), *wide = kn_view_dtype(x, KN_I64);
    CHECK_VALUES(bits, 0x3f800000, (double)(int32_t)0xc0000000, 0, 0x40400000);
    CHECK_SHAPE(halves, 2, 4);
    CHECK_SHAPE(wide, 2, 1);
    CHECK_SHAPE(kn_view_dtype(x, KN_U8), 2, 8);
    CHECK_VALUES(kn_view_dtype(halves, KN_F32), 1, -2, 0, 3);
    CHECK_VALUES(kn_view_dtype(wide, KN_F32), 1, -2, 0, 3);
    CHECK_TENSOR(kn_fill_(kn_narrow(kn_view_dtype(x, KN_U8), 0, 1, 1), 0));
    CHECK_VALUES(x, 1, -2, 0, 0);
    CHECK_VALUES(kn_view_dtype(kn_narrow(kn_view_dtype(x, KN_U8), 1, 4, 4), KN_F32), -2, 0); /* an offset, strides */
    CHECK_SHAPE(kn_view_dtype(kn_zeros(KN_SHAPE(3, 0)), KN_F16), 3, 0);
    CHECK_VALUES(kn_view_dtype(kn_ones(KN_SCALAR), KN_I32), 0x3f800000);
    kn_tensor *leaf = kn_ones(KN_SHAPE(2), .requires_grad = true);
    assert_false(kn_requires_grad(kn_view_dtype(leaf, KN_F16))); /* as in PyTorch */
}

TENSOR_TEST_F64(view_dtype_refuses)
{
    kn_tensor *bytes = kn_zeros(KN_SHAPE(4, 8), .dtype = KN_U8), *x = kn_zeros(KN_SHAPE(3, 3));
    assert_null(kn_view_dtype(NULL, KN_F32));
    CHECK_ERROR(KN_ERR_ARGUMENT, "view_dtype", "`x` is NULL");
    assert_null(kn_view_dtype(x, (kn_dtype)99));
    CHECK_ERROR(KN_ERR_ARGUMENT, "view_dtype", "99 is not a dtype");
    assert_null(kn_view_dtype(x, KN_F64));
    CHECK_ERROR(KN_ERR_SHAPE, "view_dtype", "size of the last dimension, 3", "multiple of 2");
    assert_null(kn_view_dtype(kn_narrow(bytes, 1, 2, 4), KN_F32));
    CHECK_ERROR(KN_ERR_SHAPE, "view_dtype", "offset in the storage, 2");
    assert_null(kn_view_dtype(kn_as_strided(bytes, KN_SHAPE(2, 4), (const int64_t[]){6, 1}, 0), KN_F32));
    CHECK_ERROR(KN_ERR_SHAPE, "view_dtype", "stride, 6");
    assert_null(kn_view_dtype(kn_t(bytes), KN_F32));
    CHECK_ERROR(KN_ERR_SHAPE, "view_dtype", "not contiguous", "kn_contiguous");
    assert_null(kn_view_dtype(kn_ones(KN_SCALAR), KN_F16));
    CHECK_ERROR(KN_ERR_SHAPE, "view_dtype", "0-dimensional");
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

TENSOR_TEST(an_address_finds_its_storage)
{
    kn_tensor *x = counted(100), *y = counted(1000), *host = kn_zeros(KN_SHAPE(5), .device = kn_device_host());
    kn_storage *storage = kn_storage_of(x), *found;
    const uint64_t address = kn_storage_address(storage), other = kn_tensor_address(y);
    size_t offset = 99;
    assert_true(address >= (uint64_t)1 << 52 && address != other);
    assert_true(kn_storage_address(storage) == address);
    assert_true(kn_tensor_address(kn_narrow(x, 0, 7, 3)) == address + 28);
    found = kn_storage_at_address(address + 399, &offset);
    assert_ptr_equal(found, storage);
    assert_int_equal(offset, 399);
    kn_storage_release(found);
    assert_null(kn_storage_at_address(address + 400, &offset));
    assert_null(kn_storage_at_address(address - 1, NULL));
    assert_null(kn_storage_at_address(0, NULL));
    assert_null(kn_storage_at_address(UINT64_MAX, NULL));
    assert_true(kn_tensor_address(host) == (uint64_t)(uintptr_t)kn_data(host));
    found = kn_storage_at_address(kn_tensor_address(host) + 19, &offset);
    assert_int_equal(offset, 19);
    kn_storage_release(found);
    kn_storage_release(storage);
    assert_int_equal(kn_error_status(), KN_OK); /* not to find one is no error */
}

TENSOR_TEST(a_storage_that_is_gone_is_not_found)
{
    uint64_t addresses[64];
    kn_tensor *tensors[64];
    for (int i = 0; i < 64; i++) {
        KN_SCOPE;
        tensors[i] = kn_retain(kn_zeros(KN_SHAPE(1 + i * 37)));
        addresses[i] = kn_tensor_address(tensors[i]);
    }
    for (int i = 0; i < 64; i += 2)
        kn_release(tensors[i]);
    for (int i = 0; i < 64; i++) {
        kn_storage *found = kn_storage_at_address(addresses[i] + 3, NULL);
        assert_true((found != NULL) == (i % 2 == 1));
        kn_storage_release(found);
    }
    for (int i = 1; i < 64; i += 2)
        kn_release(tensors[i]);
    kn_storage *nothing = kn_storage_new(0, NULL), *found = kn_storage_at_address(kn_storage_address(nothing), NULL);
    assert_ptr_equal(found, nothing);
    kn_storage_release(found);
    kn_storage_release(nothing);
}

enum { ROUNDS = 2000, SHARED = 8 };
static atomic_uint_fast64_t shared_addresses[SHARED];
static atomic_int wrong;

/* Threads make storages, tell the others their addresses, look up what others told, and release. */
static void *work(void *user)
{
    unsigned state = (unsigned)(uintptr_t)user;
    for (int i = 0; i < ROUNDS; i++) {
        kn_storage *mine = kn_storage_new(64 + (state = state * 1664525 + 1013904223) % 4096, NULL);
        const uint64_t address = kn_storage_address(mine);
        atomic_store(&shared_addresses[state >> 8 & (SHARED - 1)], address);
        size_t offset = 0;
        const uint64_t asked = atomic_load(&shared_addresses[state >> 16 & (SHARED - 1)]);
        kn_storage *found = kn_storage_at_address(asked, &offset), *own = kn_storage_at_address(address + 17, NULL);
        if (found && kn_storage_address(found) + offset != asked)
            atomic_fetch_add(&wrong, 1);
        if (!mine || own != mine)
            atomic_fetch_add(&wrong, 1);
        kn_storage_release(own);
        kn_storage_release(mine);
        kn_storage_release(found);
    }
    return NULL;
}

TENSOR_TEST(threads_look_up_what_others_release)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* --- resizing ----------------------------------------------------------------------------------------------------- */

static void resize_on(kn_device *device)
{
    KN_SCOPE;
    kn_storage *storage = kn_storage_new(12, device);
    kn_tensor *x = kn_retain(kn_tensor_from_storage(storage, KN_I32, KN_SHAPE(3), NULL, 0)), *y;
    const uint64_t before = kn_storage_address(storage);
    size_t offset;
    CHECK_OK(kn_write(x, ((int32_t[]){1, 2, 3}), 12));
    CHECK_OK(kn_storage_resize(storage, 4000));
    assert_int_equal(kn_storage_bytes(storage), 4000);
    CHECK_VALUES(x, 1, 2, 3);
    y = kn_tensor_from_storage(storage, KN_I32, KN_SHAPE(1000), NULL, 0);
    CHECK_VALUES(kn_narrow(kn_to(y, kn_device_current()), 0, 0, 3), 1, 2, 3);
    kn_storage *found = kn_storage_at_address(kn_storage_address(storage) + 3999, &offset);
    assert_true(found == storage && offset == 3999);
    assert_true(kn_storage_address(storage) != before);
    kn_storage_release(found);
    assert_int_equal(kn_storage_resize(storage, 8), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "kn_storage_resize", "tensors may use the bytes");
    kn_release(x);
    CHECK_OK(kn_storage_resize(storage, 4000));
    kn_storage_release(storage);
}

TENSOR_TEST(a_storage_grows)
{
    resize_on(NULL);
    resize_on(kn_device_host());
    kn_storage *storage = kn_storage_new(12, NULL);
    CHECK_OK(kn_storage_resize(storage, 4)); /* nobody uses it */
    CHECK_OK(kn_storage_resize(storage, 0));
    CHECK_OK(kn_storage_resize(storage, 8));
    assert_int_equal(kn_storage_resize(storage, SIZE_MAX), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "kn_storage_resize");
    kn_storage_release(storage);
    storage = kn_storage_of(kn_empty(KN_SHAPE(3), .pin_memory = true));
    assert_int_equal(kn_storage_resize(storage, 100), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "pinned memory");
    kn_storage_release(storage);
}

static void check_unusable(kn_tensor *x, kn_tensor *other)
{
    double value;
    float values[3];
    assert_null(kn_neg(x));
    CHECK_ERROR(KN_ERR_STATE, "neg", "resized to 0 bytes", "12 bytes with kn_storage_resize");
    assert_int_equal(kn_copy_(x, other), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_int_equal(kn_copy_(other, x), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_int_equal(kn_read(x, values, sizeof values), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_int_equal(kn_write(x, values, sizeof values), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_int_equal(kn_item(kn_narrow(x, 0, 1, 1), &value), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_null(kn_uniform_(x, 0, 1));
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_null(kn_fill_(x, 1));
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    assert_null(kn_to(x, kn_device_host()));
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    size_t offset;
    assert_null(kn_native_memory(x, &offset));
    CHECK_ERROR(KN_ERR_STATE, "kn_native_memory", "resized to 0 bytes");
}

TENSOR_TEST(a_storage_gives_up_its_memory_and_gets_it_back)
{
    kn_tensor *x = kn_from_data(((float[]){1, 2, 3}), KN_SHAPE(3)), *other = kn_ones(KN_SHAPE(3));
    kn_storage *storage = kn_storage_of(x);
    const uint64_t address = kn_storage_address(storage);
    CHECK_OK(kn_storage_resize(storage, 0));
    assert_true(kn_storage_bytes(storage) == 0 && kn_storage_address(storage) == 0 && kn_tensor_address(x) == 0);
    kn_storage *found = kn_storage_at_address(address, NULL);
    assert_true(found != storage);
    kn_storage_release(found);
    check_unusable(x, other);
    CHECK_OK(kn_storage_resize(storage, 0));
    assert_int_equal(kn_storage_resize(storage, 8), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "tensors may use the bytes");
    CHECK_OK(kn_storage_resize(storage, 12));
    CHECK_OK(kn_copy_(x, other));
    CHECK_VALUES(kn_add(x, other), 2, 2, 2);
    found = kn_storage_at_address(kn_storage_address(storage), NULL);
    assert_ptr_equal(found, storage);
    kn_storage_release(found);
    CHECK_OK(kn_storage_resize(storage, 0)); /* and is released so */
    kn_storage_release(storage);
    storage = kn_storage_of(kn_to(other, kn_device_host()));
    assert_int_equal(kn_storage_resize(storage, 0), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "tensors may use the bytes");
    kn_storage_release(storage);
}

/* As FSDP does: a weight is freed after forward, and there again for backward. */
TENSOR_TEST(a_weight_comes_back_for_backward)
{
    kn_tensor *w = kn_from_data(((float[]){2, 3}), KN_SHAPE(2)), *x = kn_ones(KN_SHAPE(2), .requires_grad = true);
    kn_tensor *kept = kn_clone(w), *y = kn_sum(kn_mul(x, w));
    kn_storage *storage = kn_storage_of(w);
    const unsigned version = kn_storage_version(storage);
    CHECK_OK(kn_storage_resize(storage, 0));
    assert_int_equal(kn_backward_with(y, NULL, true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "resized to 0 bytes");
    CHECK_OK(kn_storage_resize(storage, 8));
    assert_int_equal(kn_storage_version(storage), version);
    CHECK_OK(kn_copy_(w, kept));
    assert_int_equal(kn_backward_with(y, NULL, true), KN_ERR_STATE);
    CHECK_ERROR(KN_ERR_STATE, "changed in place");
    CHECK_OK(kn_storage_set_version(storage, version));
    CHECK_OK(kn_backward(y));
    CHECK_VALUES(kn_grad(x), 2, 3);
    kn_storage_release(storage);
    assert_int_equal(kn_storage_set_version(NULL, 0), KN_ERR_ARGUMENT);
    CHECK_ERROR(KN_ERR_ARGUMENT, "`storage` is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_storage_carries_several_tensors),
        TEST(a_storage_outlives_its_tensors_and_counts_changes),
        TEST(layouts_that_do_not_fit_are_refused),
        TEST(null_is_no_storage),
        TEST(as_strided_shows_any_part),
        TEST(windows_sum_their_gradients),
        TEST(what_lies_outside_of_x_has_no_gradient),
        TEST(changes_in_place_are_recorded),
        TEST(as_strided_refuses),
        TEST(bytes_as_another_dtype),
        TEST(view_dtype_refuses),
        TEST(an_address_finds_its_storage),
        TEST(a_storage_that_is_gone_is_not_found),
        TEST(threads_look_up_what_others_release),
        TEST(a_storage_grows),
        TEST(a_storage_gives_up_its_memory_and_gets_it_back),
        TEST(a_weight_comes_back_for_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
