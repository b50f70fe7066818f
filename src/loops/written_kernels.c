/* loops/written_kernels.c - see written_kernels.h. */
#include "loops/written_kernels.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"

struct kn_written_kernel {
    kn_user_source source; /* its name is the kernel's */
    kn_written_kernel *next;
    size_t size;
    uint8_t form[];
};

static const kn_written_kernel *find(const kn_written_kernels *kernels, const kn_kernel_request *r)
{
    const kn_written_kernel *kernel = atomic_load_explicit(&kernels->first, memory_order_acquire);
    while (kernel && (kernel->size != r->form_size || memcmp(kernel->form, r->form, r->form_size) != 0))
        kernel = kernel->next;
    return kernel;
}

static kn_status write_source(kn_user_source *source, const kn_kernel_request *r)
{
    char name[80];
    kn_text text = {0};
    r->write(&text, r->code, r->form);
    char *finished = kn_text_finish(&text);
    if (!finished)
        return KN_ERR_MEMORY;
    snprintf(name, sizeof name, "%s%s", r->prefix, r->name);
    const kn_status status = kn_user_source_add(source, name, finished, r->has_user_code);
    kn_free(finished);
    return status;
}

/* Two threads may both add one, with the same source. */
static kn_status add(const kn_written_kernel **kernel, kn_written_kernels *kernels, const kn_kernel_request *r)
{
    kn_written_kernel *made = kn_calloc(1, sizeof *made + r->form_size);
    if (!made)
        return KN_ERR_MEMORY;
    made->size = r->form_size;
    memcpy(made->form, r->form, r->form_size);
    const kn_status status = write_source(&made->source, r);
    if (status != KN_OK) {
        kn_free(made);
        return status;
    }
    made->next = atomic_load(&kernels->first);
    while (!atomic_compare_exchange_weak(&kernels->first, &made->next, made))
        ;
    *kernel = made;
    return KN_OK;
}

kn_status kn_written_kernel_get(const kn_user_source **source, kn_written_kernels *kernels,
                                const kn_kernel_request *request)
{
    const kn_written_kernel *kernel = find(kernels, request);
    if (!kernel)
        KN_TRY(add(&kernel, kernels, request));
    *source = &kernel->source;
    return KN_OK;
}

void kn_written_kernels_free(kn_written_kernels *kernels)
{
    kn_written_kernel *kernel = atomic_exchange(&kernels->first, NULL);
    while (kernel) {
        kn_written_kernel *next = kernel->next;
        kn_free(kernel);
        kernel = next;
    }
}

const char *kn_written_kernel_options(bool computes_f64, bool uses_f64)
{
    if (computes_f64)
        return "-DKN_USE_F64";
    return uses_f64 ? "-DKN_USE_F64 -cl-single-precision-constant" : "-cl-single-precision-constant";
}

const char *kn_store_kind(int compute, int dtype)
{
    if (dtype == KN_BOOL)
        return "BOOL";
    const bool becomes_whole = kn_dtype_is_floating((kn_dtype)compute) && !kn_dtype_is_floating((kn_dtype)dtype);
    return becomes_whole ? "WHOLE" : kn_dtype_kind((kn_dtype)dtype);
}
