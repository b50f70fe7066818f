/* rt/clblast/gemm.c - CLBlast as a provider of matrix products. */
#include "rt/clblast/gemm.h"

#include <clblast_c.h>
#include <stdatomic.h>

#include "rt/clblast/gemm_call.h"
#include "rt/clblast/parameters.h"
#include "rt/command/recorder.h"
#include "rt/device/lost.h"
#include "rt/memory/place.h"
#include "rt/program/build_progress.h"
#include "rt/stream/lone.h"
#include "rt/stream/settle.h"
#include "rt/trace/watch.h"

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
    return operand_fits(&p->a, element, (p->a.transposed ? p->k : p->m) * p->a.ld) &&
           operand_fits(&p->b, element, (p->b.transposed ? p->n : p->k) * p->b.ld) &&
           operand_fits(&p->c, element, p->m * p->c.ld);
}

/* A call's arguments in the form that CLBlast's functions take. Only plain GEMM: GemmStridedBatched of CLBlast 1.6 and
 * earlier ignores offsets and strides of matrices that need no padding (its BatchedGemmIndirect uses them in place). */
#define DEFINE_GEMM(name, type, letter)                                                                                \
    static CLBlastStatusCode name(cl_command_queue *queue, const kn_gemm_call *call, cl_mem scratch, cl_event *event)  \
    {                                                                                                                  \
        const kn_gemm_params *p = &call->params;                                                                       \
        const CLBlastTranspose ta = p->a.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        const CLBlastTranspose tb = p->b.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;                                             \
        cl_mem a = call->a, b = call->b, c = call->c;                                                                  \
        const size_t a0 = call->a_offset, b0 = call->b_offset, c0 = call->c_offset;                                    \
        return CLBlast##letter##gemmWithTempBuffer(CLBlastLayoutRowMajor, ta, tb, m, n, k, (type)p->alpha, a, a0,      \
                                                   (size_t)p->a.ld, b, b0, (size_t)p->b.ld, (type)p->beta, c, c0,      \
                                                   (size_t)p->c.ld, queue, event, scratch);                            \
    }                                                                                                                  \
    static CLBlastStatusCode name##_scratch(cl_command_queue *queue, const kn_gemm_call *call, size_t *bytes)          \
    {                                                                                                                  \
        const kn_gemm_params *p = &call->params;                                                                       \
        const CLBlastTranspose ta = p->a.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        const CLBlastTranspose tb = p->b.transposed ? CLBlastTransposeYes : CLBlastTransposeNo;                        \
        return CLBlast##letter##GemmTempBufferSize(CLBlastLayoutRowMajor, ta, tb, (size_t)p->m, (size_t)p->n,          \
                                                   (size_t)p->k, call->a_offset, (size_t)p->a.ld, call->b_offset,      \
                                                   (size_t)p->b.ld, call->c_offset, (size_t)p->c.ld, queue, bytes);    \
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

/* --- memory for padded copies ------------------------------------------------------------------------------------- */

/* Allocated from the pool and freed as soon as the call is enqueued, since later allocations on the stream are used
 * after it. In a capture it belongs to the graph. */
static kn_status allocate_scratch(kn_buffer **scratch, kn_stream *stream, kn_gemm_call *call)
{
    const kn_gemm_params *p = &call->params;
    size_t bytes = 0;
    kn_turn turn = kn_stream_turn(stream);
    kn_clblast_lock();
    kn_clblast_prepare(stream->device, p->f64);
    CLBlastStatusCode code =
        p->f64 ? gemm_f64_scratch(&turn.queue, call, &bytes) : gemm_f32_scratch(&turn.queue, call, &bytes);
    kn_clblast_unlock();
    if (code != CLBlastSuccess)
        return fail((int)code, stream);
    if (bytes == 0)
        return KN_OK;
    const size_t align = stream->device->limits.address_align;
    KN_TRY(kn_buffer_alloc(scratch, stream, bytes + align));
    call->scratch = kn_buffer_memory(*scratch);
    call->scratch_offset = (kn_buffer_offset(*scratch) + align - 1) / align * align;
    call->scratch_bytes = bytes;
    return KN_OK;
}

/* CLBlast takes a whole memory object, but the pool's blocks are parts of one, hence a sub-buffer. */
static cl_mem scratch_of(const kn_gemm_call *call)
{
    const cl_buffer_region region = {call->scratch_offset, call->scratch_bytes};
    cl_int code;
    return call->scratch
               ? clCreateSubBuffer(call->scratch, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code)
               : NULL;
}

/* --- the product -------------------------------------------------------------------------------------------------- */

/* CLBlast compiles its kernels on first use, without reporting it. */
static CLBlastStatusCode run_product(kn_stream *stream, const kn_gemm_call *call, cl_mem scratch, cl_event *event)
{
    static atomic_bool used[KN_MAX_DEVICES][2]; /* per precision */
    const bool f64 = call->params.f64;
    const int index = kn_device_index(stream->device);
    const bool first = index >= 0 && index < KN_MAX_DEVICES && !atomic_exchange(&used[index][f64], true);
    kn_build_wait wait = first ? kn_build_begin("CLBlast GEMM") : (kn_build_wait){0};
    kn_turn turn = kn_stream_turn(stream);
    cl_event *watched = kn_watch_event(turn, event);
    CLBlastStatusCode code = (CLBlastStatusCode)kn_lone_begin(stream, turn);
    if (code == CLBlastSuccess) {
        code = f64 ? gemm_f64(&turn.queue, call, scratch, watched) : gemm_f32(&turn.queue, call, scratch, watched);
        kn_lone_end(stream);
    }
    if (code == CLBlastSuccess)
        code = (CLBlastStatusCode)kn_stream_enqueued(stream, turn, CL_SUCCESS);
    if (first)
        kn_build_log_launch(stream->device, "CLBlast", "CLBlast GEMM", kn_build_end(wait, code == CLBlastSuccess));
    return code;
}

/* The event is that of CLBlast's last kernel. Without a sub-buffer CLBlast allocates a buffer itself. */
kn_status kn_clblast_enqueue(kn_stream *stream, const kn_gemm_call *call)
{
    const kn_gemm_params *p = &call->params;
    cl_event event;
    cl_mem scratch = scratch_of(call);
    kn_clblast_lock();
    kn_clblast_prepare(stream->device, p->f64);
    CLBlastStatusCode code = run_product(stream, call, scratch, &event);
    kn_clblast_unlock();
    if (scratch)
        clReleaseMemObject(scratch); /* the enqueued kernels keep it alive */
    if (code != CLBlastSuccess)
        return fail((int)code, stream);
    kn_watch(stream, event, .kind = KN_COMMAND_KERNEL, .operation = "gemm (CLBlast)", .kernel = "CLBlast GEMM",
             .dims = 2, .global = {(size_t)p->n, (size_t)p->m});
    return kn_stream_count_launch(stream);
}

static kn_status enqueue_or_record(kn_stream *stream, const kn_gemm_call *call)
{
    const kn_gemm_params *p = &call->params;
    if (kn_stream_has_capture(stream)) {
        kn_capture *capture = kn_stream_require_capture(stream);
        return capture ? capture->recorder->gemm(capture, call) : KN_ERR_STATE;
    }
    kn_buffer_mark_use(p->a.buffer, stream);
    kn_buffer_mark_use(p->b.buffer, stream);
    kn_buffer_mark_use(p->c.buffer, stream);
    return kn_clblast_enqueue(stream, call);
}

static kn_status multiply(kn_stream *stream, const kn_gemm_params *p)
{
    const size_t element = p->f64 ? sizeof(double) : sizeof(float);
    if (!fits(p, element))
        return kn_fail(KN_ERR_SHAPE, "CLBlast takes matrices of fewer than 2^31 elements");
    kn_gemm_call call = {.params = *p,
                         .a = kn_buffer_memory(p->a.buffer),
                         .b = kn_buffer_memory(p->b.buffer),
                         .c = kn_buffer_memory(p->c.buffer),
                         .a_offset = element_offset(&p->a, element),
                         .b_offset = element_offset(&p->b, element),
                         .c_offset = element_offset(&p->c, element)};
    const kn_buffer *used[] = {p->a.buffer, p->b.buffer, p->c.buffer};
    kn_buffer *scratch = NULL;
    KN_TRY(kn_stream_settle_for(stream, used, 3));
    if (!kn_stream_has_capture(stream))
        KN_TRY(kn_stream_enter_settled(stream, "gemm"));
    kn_status status = allocate_scratch(&scratch, stream, &call);
    if (status == KN_OK)
        status = enqueue_or_record(stream, &call);
    kn_buffer_free(scratch);
    return status;
}

kn_status kn_clblast_gemm(kn_stream *stream, const kn_gemm_params *params)
{
    kn_gemm_params one = *params;
    one.batch = 1;
    for (int64_t i = 0; i < params->batch; i++) {
        KN_TRY(multiply(stream, &one));
        one.a.offset += one.a.batch_stride;
        one.b.offset += one.b.batch_stride;
        one.c.offset += one.c.batch_stride;
    }
    return KN_OK;
}
