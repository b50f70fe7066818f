/* rt/clblast.c - CLBlast as a provider of matrix products. */
#include <clblast_c.h>

#include "rt/capture.h"
#include "rt/lost.h"

/* The first use of a routine builds its programs into a cache that two threads may not fill at once. One lock around
 * all calls: they only enqueue. */
static kn_mutex lock = KN_MUTEX_INIT;

/* CLBlast counts elements in int inside its kernels. */
#define CLBLAST_MAX_ELEMENTS ((int64_t)1 << 31)

static size_t element_offset(const kn_gemm_operand *operand, size_t element)
{
    return kn_buffer_offset(operand->buffer) / element + (size_t)operand->offset;
}

static bool operand_fits(const kn_gemm_operand *operand, size_t element, int64_t extent)
{
    return (int64_t)element_offset(operand, element) + extent < CLBLAST_MAX_ELEMENTS;
}

static bool fits(const kn_gemm_params *p, size_t element)
{
    int64_t last = p->batch - 1;
    return operand_fits(&p->a, element, last * p->a.batch_stride + (p->a.transposed ? p->k : p->m) * p->a.ld) &&
           operand_fits(&p->b, element, last * p->b.batch_stride + (p->b.transposed ? p->n : p->k) * p->b.ld) &&
           operand_fits(&p->c, element, last * p->c.batch_stride + p->m * p->c.ld);
}

/* The batched routine takes a kernel of its own; one product goes through plain GEMM, which has more tuned cases. */
#define DEFINE_GEMM(name, type, letter)                                                                                \
    static CLBlastStatusCode name(cl_command_queue *queue, const kn_gemm_call *call, cl_event *event)                  \
    {                                                                                                                  \
        const kn_gemm_params *p = &call->params;                                                                       \
        const CLBlastTranspose ta = p->a.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        const CLBlastTranspose tb = p->b.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;                                             \
        const cl_mem a = call->a, b = call->b, c = call->c;                                                            \
        const size_t a0 = call->a_offset, b0 = call->b_offset, c0 = call->c_offset;                                    \
        if (p->batch == 1)                                                                                             \
            return CLBlast##letter##gemm(CLBlastLayoutRowMajor, ta, tb, m, n, k, (type)p->alpha, a, a0,                \
                                         (size_t)p->a.ld, b, b0, (size_t)p->b.ld, (type)p->beta, c, c0,                \
                                         (size_t)p->c.ld, queue, event);                                               \
        return CLBlast##letter##gemmStridedBatched(CLBlastLayoutRowMajor, ta, tb, m, n, k, (type)p->alpha, a, a0,      \
                                                   (size_t)p->a.ld, (size_t)p->a.batch_stride, b, b0, (size_t)p->b.ld, \
                                                   (size_t)p->b.batch_stride, (type)p->beta, c, c0, (size_t)p->c.ld,   \
                                                   (size_t)p->c.batch_stride, (size_t)p->batch, queue, event);         \
    }
DEFINE_GEMM(gemm_f32, float, S)
DEFINE_GEMM(gemm_f64, double, D)
#undef DEFINE_GEMM

static kn_status fail(int code, const kn_stream *stream)
{
    if (kn_device_note_error(stream->device, (cl_int)code, "running CLBlast's GEMM"))
        return kn_device_fail_lost(stream->device);
    return kn_fail(KN_ERR_DEVICE, "CLBlast's GEMM failed on %s (%s): status %d (%s)", stream->device->label,
                   stream->device->properties.name, code, kn_cl_error_name((cl_int)code));
}

/* The event is that of the last of CLBlast's kernels. */
kn_status kn_clblast_enqueue(kn_stream *stream, const kn_gemm_call *call)
{
    const kn_gemm_params *p = &call->params;
    cl_event event;
    cl_event *wanted = kn_watch_event(&event);
    kn_lock(&lock);
    CLBlastStatusCode code = p->f64 ? gemm_f64(&stream->queue, call, wanted) : gemm_f32(&stream->queue, call, wanted);
    kn_unlock(&lock);
    if (code != CLBlastSuccess)
        return fail((int)code, stream);
    kn_watch(stream, event, .kind = KN_COMMAND_KERNEL, .operation = "gemm (CLBlast)", .kernel = "CLBlast GEMM",
             .dims = 3, .global = {(size_t)p->n, (size_t)p->m, (size_t)p->batch});
    return kn_stream_count_launch(stream);
}

kn_status kn_clblast_gemm(kn_stream *stream, const kn_gemm_params *params)
{
    const kn_gemm_params *p = params;
    const size_t element = p->f64 ? sizeof(double) : sizeof(float);
    if (!fits(p, element))
        return kn_fail(KN_ERR_SHAPE, "CLBlast takes matrices of fewer than 2^31 elements");
    const kn_gemm_call call = {.params = *p,
                               .a = kn_buffer_memory(p->a.buffer),
                               .b = kn_buffer_memory(p->b.buffer),
                               .c = kn_buffer_memory(p->c.buffer),
                               .a_offset = element_offset(&p->a, element),
                               .b_offset = element_offset(&p->b, element),
                               .c_offset = element_offset(&p->c, element)};
    if (kn_stream_has_capture(stream))
        return kn_capture_gemm(stream, &call);
    KN_TRY(kn_stream_enter(stream, "gemm"));
    kn_buffer_mark_use(p->a.buffer, stream);
    kn_buffer_mark_use(p->b.buffer, stream);
    kn_buffer_mark_use(p->c.buffer, stream);
    return kn_clblast_enqueue(stream, &call);
}
