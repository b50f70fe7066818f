/* koine/graph.h - records a step once and replays it, as torch.cuda.CUDAGraph.
 *
 * While a graph captures, the work enqueued on its stream is recorded instead of run. A replay submits all of it with
 * little host time, reading and writing the same memory as the capture: write new values to the inputs with kn_copy_ or
 * kn_write, replay, read the outputs.
 *
 *     step(x, y);                       // warm-up: compiles kernels, creates the optimizer's state
 *     kn_tensor *loss = NULL;
 *     {
 *         KN_GRAPH_CAPTURE(graph, NULL);
 *         KN_SCOPE;
 *         loss = kn_retain(step(x, y));
 *     }
 *     for (...) { kn_copy_(x, batch); kn_copy_(y, labels); kn_graph_replay(graph); }
 *
 * A replay computes the same bits as the step without a graph: random draws continue from the generator's state, an
 * optimizer counts the step and uses its current learning rate.
 *
 * Memory allocated during the capture comes from the graph's private pool and stays reserved for it. Tensors created
 * earlier must outlive the graph: once one is freed, kn_graph_replay fails and says so.
 *
 * What cannot be recorded is an error, at the call and again at kn_graph_capture_end: reading a value or waiting for
 * the device, copying from host memory or to another device, events, waiting for other streams, an optimizer's first
 * step. Work on other streams is not recorded and runs at once. */
#ifndef KOINE_GRAPH_H
#define KOINE_GRAPH_H

#include <koine/common.h>
#include <koine/memory.h>
#include <koine/status.h>

KN_BEGIN_DECLS

typedef struct kn_graph kn_graph; /* used by one thread at a time */

KN_API kn_graph *kn_graph_new(void); /* empty; the caller frees it; NULL with an error */

/* Waits for its replays. Ends a capture in progress on this thread; a capture on another thread keeps the graph alive.
 * NULL allowed. */
KN_API void kn_graph_free(kn_graph *graph);

/* Starts recording what this thread enqueues on `stream` (NULL: the current stream of the current device). Until the
 * end, other threads that use the stream get an error. KN_ERR_STATE if the graph already has a recording (reset it
 * first) or the stream is being captured. */
KN_API kn_status kn_graph_capture_begin(kn_graph *graph, kn_stream *stream);

/* Ends the recording. An error of this thread during the capture that was not cleared by kn_error_clear, or the release
 * of an earlier tensor, makes it fail: the graph is empty again, and the stream is usable as before. */
KN_API kn_status kn_graph_capture_end(kn_graph *graph);

/* Records to the end of the enclosing block (a guard: koine/common.h). If the recording cannot begin, the thread does
 * no work on any device to the end of the block (kn_refuse_work). kn_graph_replay reports an error of the beginning or
 * the end again. */
#define KN_GRAPH_CAPTURE(graph, stream)                                                                                \
    KN_GUARD(kn_graph *, kn_graph_guard_, kn_graph_enter(graph, stream), kn_graph_leave)
static inline kn_graph *kn_graph_enter(kn_graph *graph, kn_stream *stream)
{
    if (kn_graph_capture_begin(graph, stream) == KN_OK)
        return graph;
    kn_refuse_work();
    return NULL;
}
static inline void kn_graph_leave(kn_graph **graph)
{
    if (*graph)
        kn_graph_capture_end(*graph);
    else
        kn_accept_work();
}

/* Runs the recorded work: on the calling thread's current stream of the graph's device, after the graph's last replay
 * if that used another stream. Returns at once, or, if several replays are not enqueued yet, once the first of them is;
 * on CPU devices whose kernels are called, when it has run.
 * KN_ERR_STATE for an empty graph, or if a tensor or an optimizer that it uses has been freed. */
KN_API kn_status kn_graph_replay(kn_graph *graph);

/* Empties the graph, for another capture. Waits for its replays; its memory is returned to the device's pool. */
KN_API kn_status kn_graph_reset(kn_graph *graph);

/* Is the calling thread's current stream of `device` (NULL: the current device) being captured? */
KN_API bool kn_is_current_stream_capturing(kn_device *device);
KN_API bool kn_stream_is_capturing(const kn_stream *stream);

/* The pool that the graph's memory comes from, NULL before a capture (torch.cuda.graph_pool_handle). To share one
 * between graphs that never run at the same time, set it before the capture. A replay writes to memory that its capture
 * freed, so only captures should allocate from such a pool. */
KN_API kn_mem_pool *kn_graph_pool(kn_graph *graph);
KN_API kn_status kn_graph_set_pool(kn_graph *graph, kn_mem_pool *pool);

/* What is recorded, one line per command: number, operation, kernel, work size. The caller frees it with kn_free. */
KN_API char *kn_graph_debug_dump(kn_graph *graph);
KN_API int kn_graph_command_count(const kn_graph *graph);

KN_END_DECLS

#endif
