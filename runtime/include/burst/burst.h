/*===- burst/burst.h - running compiled programs -----------------*- C -*-===*\
|*                                                                            *|
|* The C API of burst: load a compiled program and run it, one rank's shards  *|
|* at a time, on the caller's memory. Handles are opaque; what is known of a  *|
|* program is told in the terms of burst/program.h.                           *|
|*                                                                            *|
|* Errors. Every function that can fail returns a burst_error, or NULL for    *|
|* success; the caller destroys it. Where a function fails, its out arguments *|
|* are NULL or unchanged.                                                     *|
|*                                                                            *|
|* Configs. The first member of every config is its own size: set it to       *|
|* sizeof. Each further field has 8 bytes, and 0 is its default; fields that  *|
|* the caller's size does not cover take the default. A size that lacks a     *|
|* required field, or is larger than what this library knows, is an error.    *|
|*                                                                            *|
|* Threads. Programs are immutable and may be used from any number of threads *|
|* at once, as may devices and traces. A stream may be used from several      *|
|* threads; runs are queued in the order of the calls. A transport serves one *|
|* run at a time. No object may be destroyed while another thread uses it.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_BURST_H
#define BURST_BURST_H

#include "burst/program.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*----------------------------------------------------------------------------*/
/* Errors                                                                     */
/*----------------------------------------------------------------------------*/

/* What the caller may do about an error. */
typedef enum burst_code {
  BURST_INVALID_ARGUMENT = 1,  /* the call is wrong: mend it */
  BURST_INVALID_PROGRAM = 2,   /* the program cannot be used here */
  BURST_OUT_OF_MEMORY = 3,     /* free memory, or run with smaller sizes */
  BURST_DEADLINE_EXCEEDED = 4, /* a peer is stuck, or the deadline too short */
  BURST_PEER_STOPPED = 5,      /* the error of another rank is the cause */
  BURST_MISMATCH = 6,          /* two ranks disagree about a message */
  BURST_PROGRAM_FAULT = 7,     /* the program broke a rule: a compiler's bug */
  BURST_SYSTEM = 8             /* the system refused a thread, a file, ... */
} burst_code;

typedef struct burst_error burst_error;

/* The whole text, the location included. Lives as long as the error. */
const char *burst_error_message(const burst_error *error);
/* Where it happened, such as "rank 2, hop 1"; may be empty. The hop of a
   transfer is the number of transfers that its run had started on the same
   channel by then, itself included. */
const char *burst_error_location(const burst_error *error);
burst_code burst_error_code(const burst_error *error);
/* NULL is ignored. */
void burst_error_destroy(burst_error *error);

/*----------------------------------------------------------------------------*/
/* Devices and streams                                                        */
/*----------------------------------------------------------------------------*/

/* A CPU device is one pool of threads, shared by all ranks and runs on it. Its
   kernels occupy at most that many threads at a time, however many ranks there
   are. A thread in burst_run may do the work of a sleeping thread of the pool
   if no CPUs are listed and it has 4 MiB of stack left. */
typedef struct burst_device burst_device;

typedef struct burst_device_config {
  size_t size;
  int64_t threads;     /* 0: one per listed CPU, or per CPU of this process */
  int64_t num_cpus;    /* 0: threads run where the system puts them */
  const int64_t *cpus; /* thread i is pinned to cpus[i % num_cpus] */
} burst_device_config;

/* `config` may be NULL: all defaults. */
burst_error *burst_device_create_cpu(const burst_device_config *config,
                                     burst_device **device);
/* When its streams are destroyed and its runs have ended. NULL is ignored. */
void burst_device_destroy(burst_device *device);
int64_t burst_device_threads(const burst_device *device);

/* A queue of runs on a device, executed one after the other by a thread of its
   own. Once a run failed, those queued behind it are not begun, and the ranks
   that they would have worked with are told (see burst_transport_stop), until
   burst_stream_synchronize has returned the error. */
typedef struct burst_stream burst_stream;

burst_error *burst_stream_create(burst_device *device, burst_stream **stream);
/* Returns when all queued runs have ended: the first error since the last call.
   Always returns, because every wait of a run has a deadline. */
burst_error *burst_stream_synchronize(burst_stream *stream);
/* Waits for the queued runs; an error that nobody asked for is dropped. NULL is
   ignored. */
void burst_stream_destroy(burst_stream *stream);

/*----------------------------------------------------------------------------*/
/* Transports                                                                 */
/*----------------------------------------------------------------------------*/

/* How one rank reaches the others; one handle per rank. When a run on it fails,
   the transport stops for good on all ranks: their runs end at once with an
   error that names the rank that failed, and why. */
typedef struct burst_transport burst_transport;

typedef struct burst_local_config {
  size_t size;
  int64_t num_ranks; /* required */
  /* A transfer ends no sooner than latency_seconds + bytes / bytes_per_second
     after both sides have started it, or after the previous one from the same
     source to the same destination has left. 0: as fast as memory. */
  double latency_seconds;
  double bytes_per_second;
  /* Not 0: data is copied as late as is legal, when either side waits for it.
   */
  int64_t checked;
} burst_local_config;

/* For ranks that are threads of this process: writes num_ranks handles. */
burst_error *burst_transport_create_local(const burst_local_config *config,
                                          burst_transport **handles);
/* Ends the runs of the other ranks, now and later, for `reason`: for callers
   that cannot run their own rank. Not during a run of this handle. */
void burst_transport_stop(burst_transport *transport, const char *reason);
/* Each handle by itself, in any order; peers that wait for this rank get an
   error. NULL is ignored. */
void burst_transport_destroy(burst_transport *transport);

/*----------------------------------------------------------------------------*/
/* Programs                                                                   */
/*----------------------------------------------------------------------------*/

/* What a compiler made, counted by references. */
typedef struct burst_program burst_program;

/* A program of code in this process. `release` (may be NULL) is called with
   `context` when the last reference is gone; not if this fails. */
burst_error *burst_program_from_image(const burst_image *image,
                                      void (*release)(void *context),
                                      void *context, burst_program **program);
/* A program from a shared object. Its code is trusted: loading runs it. */
burst_error *burst_program_load(const char *path, burst_program **program);
void burst_program_retain(burst_program *program);
/* NULL is ignored. */
void burst_program_release(burst_program *program);

const char *burst_program_name(const burst_program *program);
/* The processor and features that it was compiled for. */
const char *burst_program_target(const burst_program *program);
int64_t burst_program_num_ranks(const burst_program *program);
/* Arguments come first, results behind them. */
int64_t burst_program_num_parameters(const burst_program *program);
int64_t burst_program_num_arguments(const burst_program *program);
/* Lives as long as the program; NULL if there is no such parameter. */
const burst_parameter *burst_program_parameter(const burst_program *program,
                                               int64_t index);

/* The shard of `rank` along the sharded dimension of a parameter, where the
   global size of that dimension is `extent`. An error if the parameter is not
   sharded, or if its extent is static and another one. */

/* How many elements of that dimension the rank holds. */
burst_error *burst_program_local_size(const burst_program *program,
                                      int64_t parameter, int64_t rank,
                                      int64_t extent, int64_t *size);
/* In storage order; `count` is the parameter's num_segments. */
burst_error *burst_program_segments(const burst_program *program,
                                    int64_t parameter, int64_t rank,
                                    int64_t extent, int64_t count,
                                    burst_segment *segments);
/* The global position of each element held; `count` is the local size. */
burst_error *burst_program_positions(const burst_program *program,
                                     int64_t parameter, int64_t rank,
                                     int64_t extent, int64_t count,
                                     int64_t *positions);

/*----------------------------------------------------------------------------*/
/* Running                                                                    */
/*----------------------------------------------------------------------------*/

/* Strides count elements and are not negative. Scalars have rank 0. */
typedef struct burst_tensor {
  void *data; /* aligned to its elements; may be NULL if there are none */
  int32_t type;
  int32_t rank;
  int64_t sizes[8];
  int64_t strides[8];
} burst_tensor;

/* The size of an element in bytes; 0 if there is no such type. */
int64_t burst_type_bytes(int32_t type);

/* Collects what runs do, for the viewers of Chrome and Perfetto. */
typedef struct burst_trace burst_trace;

burst_error *burst_trace_create(burst_trace **trace);
/* Replaces the file at `path` by what was recorded until now: a process per
   rank with a compute track (launches and waits) and its transfers. */
burst_error *burst_trace_write(burst_trace *trace, const char *path);
/* NULL is ignored. */
void burst_trace_destroy(burst_trace *trace);

/* What a run of one rank did. Written also where the run fails. */
typedef struct burst_counters {
  size_t size; /* set by the caller, as in a config */
  int64_t messages_sent;
  int64_t messages_received;
  int64_t bytes_sent;
  int64_t bytes_received;
  int64_t launches;
  int64_t tasks;
  int64_t tensor_bytes;   /* of the caller's tensors */
  int64_t peak_bytes[4];  /* of allocations of each BURST_MEMORY kind */
  int64_t peak_sum;       /* of allocations of all kinds together */
  int64_t peak_total;     /* peak_sum + tensor_bytes */
  double compute_seconds; /* in launches */
  double wait_seconds;    /* for transfers */
} burst_counters;

typedef struct burst_run_config {
  size_t size;
  int64_t rank;
  burst_device *device;       /* required unless a stream is given */
  burst_stream *stream;       /* NULL: run on the calling thread, then return */
  burst_transport *transport; /* of `rank`; NULL only where the program has one
                                 rank */
  double deadline_seconds;    /* of each wait for a peer; 0: 600 */
  burst_trace *trace;         /* NULL: none */
  /* Not 0: look for what the program does wrong. Allocations, results, and
     memory to receive into are filled with 0xFF bytes; it is an error to touch
     memory in flight: a launch that reads or writes what is being received or
     writes what is being sent, a start that overlaps a transfer under way, a
     release; so is an order of tasks that is no permutation. */
  int64_t checked;
} burst_run_config;

/* Runs the program of one rank on its shards. `values` has a tensor for each of
   the `count` parameters. Types, ranks and static sizes must be those of the
   parameter; the sharded dimension has the rank's local size; the last stride
   is 1; no result overlaps another tensor or itself. Extents are scalars of
   type i64.

   With a stream, errors of the run are those of burst_stream_synchronize; the
   array `values` is copied, but what its tensors point to (scalars included),
   the counters, the transport and the trace are used until then. */
burst_error *burst_run(burst_program *program, const burst_run_config *config,
                       const burst_tensor *values, int64_t count,
                       burst_counters *counters);

/*----------------------------------------------------------------------------*/
/* Global tensors                                                             */
/*----------------------------------------------------------------------------*/

/* Copies between a parameter's global tensor and the shard of one rank. Both
   may have any strides; what is written may not overlap itself. Parameters that
   are not sharded are copied whole. */
burst_error *burst_shard(const burst_program *program, int64_t parameter,
                         int64_t rank, const burst_tensor *global,
                         const burst_tensor *local);
burst_error *burst_gather(const burst_program *program, int64_t parameter,
                          int64_t rank, const burst_tensor *local,
                          const burst_tensor *global);

typedef struct burst_run_all_config {
  size_t size;
  burst_device *device; /* required */
  /* As in burst_run_config and burst_local_config. */
  double deadline_seconds;
  burst_trace *trace;
  int64_t checked;
  double latency_seconds;
  double bytes_per_second;
} burst_run_all_config;

/* Runs all ranks as threads on shards of global tensors, and gathers the
   results; a result that is not sharded is taken from rank 0. `counters` is
   NULL or has an element per rank, all of one size. The error is that of the
   rank that failed first, not of those that it stopped. */
burst_error *burst_run_all(burst_program *program,
                           const burst_run_all_config *config,
                           const burst_tensor *globals, int64_t count,
                           burst_counters *counters);

/*----------------------------------------------------------------------------*/
/* Compiling                                                                  */
/*----------------------------------------------------------------------------*/

/* Declared here by the compiler; not part of the runtime library. */

#ifdef __cplusplus
}
#endif

#endif /* BURST_BURST_H */
