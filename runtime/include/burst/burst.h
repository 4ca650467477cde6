/*===- burst/burst.h - running compiled programs -----------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* The C API of burst: load a compiled program and run it, one rank's shards  *|
|* at a time, on the caller's memory. Handles are opaque; what is known of a  *|
|* program is told in the terms of burst/program.h.                           *|
|*                                                                            *|
|* Errors. Every function that can fail returns a burst_error, or NULL for    *|
|* success; the caller destroys it. Where a function fails, its out arguments *|
|* are NULL or unchanged.                                                     *|
|*                                                                            *|
|* Arguments. NULL in the place of an object, a text, an array with elements  *|
|* or an out argument is an error that names the function and the argument.   *|
|* Functions that return no error ignore it, and answer 0, "" or NULL.        *|
|*                                                                            *|
|* Handles. Every object begins with a magic number of its kind. Where the    *|
|* library was built without NDEBUG, a handle that was destroyed, or is of    *|
|* another kind, ends the process with a message that names the function.     *|
|*                                                                            *|
|* Configs. The first member of every config is its own size: set it to       *|
|* sizeof. Each further field has 8 bytes, and 0 is its default; fields that  *|
|* the caller's size does not cover take the default. A size that lacks a     *|
|* required field, or is larger than what this library knows, is an error.    *|
|* Configs and enumerations grow at their end only; a value keeps its meaning *|
|* as long as versions fit (burst/version.h).                                 *|
|*                                                                            *|
|* Threads. Programs are immutable and may be used from any number of threads *|
|* at once, as may devices and traces. A stream may be used from several      *|
|* threads; runs are queued in the order of the calls. A transport serves one *|
|* run at a time: another one on it is an error, and the first goes on. No    *|
|* object may be destroyed while another thread uses it. Programs may be      *|
|* loaded, compiled and proved by any number of threads at once.              *|
|*                                                                            *|
|* Memory. Where memory of the library's own is out, a function returns       *|
|* BURST_OUT_OF_MEMORY and leaves nothing behind. Nothing is thrown through   *|
|* these functions. LLVM is the exception: built without exceptions, it ends  *|
|* the process when memory is out while it compiles or proves. Who cannot     *|
|* have that compiles in a process of its own (burst_compile_to_file, or      *|
|* burst-compile), and loads the file.                                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_BURST_H
#define BURST_BURST_H

#include "burst/program.h"
#include "burst/transport.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*----------------------------------------------------------------------------*/
/* Version                                                                    */
/*----------------------------------------------------------------------------*/

/* BURST_VERSION of the library that was loaded. */
const char *burst_version(void);
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

/* Whether the library fits a host that was compiled with BURST_VERSION_MAJOR
   and BURST_VERSION_MINOR of its headers: hosts that load the library
   themselves, such as bindings, ask this first. BURST_INVALID_ARGUMENT where it
   does not. */
burst_error *burst_check_version(int major, int minor);

/*----------------------------------------------------------------------------*/
/* Devices and streams                                                        */
/*----------------------------------------------------------------------------*/

/* A CPU device is one pool of threads, shared by all ranks and runs on it. Its
   kernels occupy at most that many threads at a time, however many ranks there
   are, and run on the listed CPUs only. A thread in burst_run may do the work
   of a thread of the pool if it has 4 MiB of stack left and is bound to CPUs
   that are listed, or none are. Unless there are more threads than CPUs for
   them, threads that run out of work look for more for 50 microseconds before
   they sleep, and so do threads in burst_run that wait for a kernel. */
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

/* A CUDA device is a GPU with the driver of CUDA 12 or later, in the context
   that CUDA's runtime uses too. It runs programs for GPUs, as a CPU device runs
   those for CPUs. Kernels of a program are loaded when it first runs; they and
   the program stay until the device is destroyed. */
typedef struct burst_cuda_config {
  size_t size;
  int64_t ordinal; /* as the driver counts: 0 is the first GPU */
  /* Memory of the GPU for programs, aligned to 64, usable in the order of a
     CUstream; NULL: there is none. `context` goes to both. Called in burst_run.
     NULL: from a pool of the device's own. */
  void *(*allocate)(void *context, int64_t bytes, void *cuda_stream);
  void (*release)(void *context, void *memory, int64_t bytes,
                  void *cuda_stream);
  void *context;
} burst_cuda_config;

/* `config` may be NULL: all defaults. */
burst_error *burst_device_create_cuda(const burst_cuda_config *config,
                                      burst_device **device);

/* When its streams are destroyed and its runs have ended. NULL is ignored. */
void burst_device_destroy(burst_device *device);
int64_t burst_device_threads(const burst_device *device);

/* Programs find the host's memory that they allocate in large blocks where the
   runs before them left it: a device keeps as much of it as the last run had at
   once, or the runs at the same time had together. This gives it back to the
   system. */
void burst_device_trim(burst_device *device);

/* A queue of runs on a device, executed one after the other by a thread of its
   own. Once a run failed, those queued behind it are not begun, and the ranks
   that they would have worked with are told (see burst_transport_stop), until
   burst_stream_synchronize has returned the error. */
typedef struct burst_stream burst_stream;

burst_error *burst_stream_create(burst_device *device, burst_stream **stream);

/* On a CUDA device a stream is a CUstream: one of its own, or the caller's
   `cuda_stream` (of the device's primary context; NULL is the legacy default
   stream), which must outlive it. There, burst_run runs the program's host code
   on the calling thread, asks the GPU for the rest, and does not wait for it.
   It waits for host code of peers only, where it meets them in a transfer, so
   every rank needs a thread of its own. Runs of other streams, or of the
   caller, are ordered by events as ever.

   The results of a run that fails are filled with 0xFF bytes (NaN) in the order
   of the stream. burst_stream_synchronize returns also where the GPU never
   ends what it was asked for.

   If the CUstream is being captured, a run becomes part of the graph: of a
   program of one rank, or of all ranks if they are captured together to one
   graph. What a graph uses of the program and the device lives until the device
   is destroyed; no deadline holds, and nobody sees errors of its launches. */
burst_error *burst_stream_create_cuda(burst_device *device, void *cuda_stream,
                                      burst_stream **stream);
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
     after both sides have started it. All that a rank sends shares its link
     out, and all that it receives its link in: they take bytes_per_second each,
     one message behind the other. 0: as fast as memory. */
  double latency_seconds;
  double bytes_per_second;
  /* Not 0: data is copied as late as is legal, when either side waits for it.
   */
  int64_t checked;
} burst_local_config;

/* For ranks that are threads of this process: writes num_ranks handles. Ranks
   are on CPUs, or all on GPUs, the same one or several: there data is copied by
   the GPU, beside kernels, and cannot be delayed. */
burst_error *burst_transport_create_local(const burst_local_config *config,
                                          burst_transport **handles);
/* A transport of the host's own engine, as burst/transport.h describes it. The
   table is copied; what its context points to lives until `destroy`. Where this
   fails, nothing of the table was called. */
burst_error *burst_transport_create(const burst_transport_table *table,
                                    burst_transport **transport);

/* What burst_transport_check tries. */
enum {
  /* Messages of all kinds, a few thousand: uneven, with gaps, large, several in
     flight on several channels, in any order of starts and waits, gathers. The
     transport can be used afterwards. */
  BURST_CHECK_MESSAGES = 0,
  /* Behind these it cannot, for they fail. Two ranks or more. */
  BURST_CHECK_MISMATCH = 1, /* rank 1 wants less than rank 0 sends */
  BURST_CHECK_DEADLINE =
      2,               /* rank 0 sends too late, when rank 1 has given up */
  BURST_CHECK_STOP = 3 /* rank 0 stops while the others wait for it */
};

typedef struct burst_check_config {
  size_t size;
  burst_transport *transport; /* required: of this rank, in no run */
  burst_device *device;       /* required: a CPU, or a GPU, as it reaches */
  int64_t what;               /* BURST_CHECK_MESSAGES, ... */
  int64_t seed;               /* of the messages, the same on all ranks */
  double deadline_seconds;    /* in which a message has to come; 0: 60 */
  /* Not 0: all starts are in one order, as those of compiled programs are, for
     an engine that carries one after the other, as NCCL does on a stream. 0:
     also sends and receives that are starts of their own, and starts of several
     channels in another order on some ranks. */
  int64_t in_order;
} burst_check_config;

/* Tries whether a transport, of this library or of the host's own, keeps the
   rules of burst/transport.h: all ranks call it, at the same time. The error
   says what was wrong on this rank; others may see none. */
burst_error *burst_transport_check(const burst_check_config *config);

/* Ends the runs of all ranks, now and later, for `reason`: for callers that
   cannot run their own rank, or that want a run of it to end, from another
   thread. */
void burst_transport_stop(burst_transport *transport, const char *reason);
/* Each handle by itself, in any order; peers that wait for this rank get an
   error. NULL is ignored. */
void burst_transport_destroy(burst_transport *transport);

/*----------------------------------------------------------------------------*/
/* Ranks that are processes                                                   */
/*----------------------------------------------------------------------------*/

/* The processes of one job, a rank each. They find each other through rank 0,
   and a thread of each tells all others over TCP every now and then what it
   does, from its first connection on. A process that dies or falls silent is
   therefore named by everybody, also by those who wait for someone who waits
   for it; and so are two ranks that cannot reach each other, or whose
   connection breaks while both live. Then the world has failed, for good: every
   call on it and every run on a transport over it ends with the same sentence.

   Ranks know each other by a token: a hash of the secret of the job, the
   address of rank 0 and the number of ranks. The secret is BURST_TOKEN, the
   same on all ranks, else the content of ~/.cache/burst/token
   ($XDG_CACHE_HOME/burst/token where that is set), which rank 0 makes for its
   user alone where it is missing. With neither, the address must be of this
   machine alone, such as 127.0.0.1; BURST_TOKEN=none says that the network is
   trusted. Who connects without the token is ignored, with a line on stderr.
   That keeps out strays, not those who read the network: nothing is encrypted.
   Ranks listen at the address of rank 0, and at that from which they reach it,
   alone.

   A rank opens about 2 P + 16 files for P ranks, those of a transport over TCP
   included. To create a world raises the soft limit of open files of the
   process (RLIMIT_NOFILE) to its hard limit.

       burst_world *world;
       burst_transport *transport;
       burst_world_config where = {sizeof(where)};
       burst_world_create(&where, &world);      // ranks as the launcher says
       burst_tcp_config how = {sizeof(how), world};
       burst_transport_create_tcp(&how, &transport);
       burst_run_config config = {sizeof(config)};
       config.rank = burst_world_rank(world);
       config.device = device;
       config.transport = transport;
       burst_run(program, &config, shards, count, NULL);
       burst_transport_destroy(transport);
       burst_world_destroy(world);

   Collective calls (create, gather, barrier, and to create a transport) are
   made by all ranks, in the same order. */
typedef struct burst_world burst_world;

typedef struct burst_world_config {
  size_t size;
  /* 0: this rank, their number and the address are read from the environment:
     BURST_RANK, BURST_NUM_RANKS and BURST_ADDRESS, else what mpirun (Open MPI),
     torchrun, mpiexec (MPICH, Intel MPI) or srun sets, in this order. */
  int64_t num_ranks;
  int64_t rank;
  /* Where rank 0 listens: "host:port". NULL: BURST_ADDRESS, else what the
     launcher knows: MASTER_ADDR and the port behind MASTER_PORT (torchrun,
     which listens on MASTER_PORT itself), the first host of the job (srun),
     this machine if it has all ranks (mpirun, mpiexec); with a port made of the
     number of the job. BURST_PORT is another port. */
  const char *address;
  double timeout_seconds;   /* until all ranks have come, and once more until
                               they have connected to each other; 0: 300 */
  double heartbeat_seconds; /* between what ranks tell; 0: 1 */
  double silence_seconds;   /* after which a rank has failed; 0: 30, or 10
                               heartbeats if that is longer */
} burst_world_config;

/* `config` may be NULL: all from the environment. Where ranks do not come, come
   twice, or are of another version of burst, all ranks are told, also those who
   come later: for that rank 0 stays for up to 10 seconds. A process that comes
   as a rank of a world that is complete is refused, and the world goes on. */
burst_error *burst_world_create(const burst_world_config *config,
                                burst_world **world);
/* When its transports are destroyed. The other ranks may go on without this
   one; who waits for it gets an error. NULL is ignored. */
void burst_world_destroy(burst_world *world);
int64_t burst_world_rank(const burst_world *world);
int64_t burst_world_num_ranks(const burst_world *world);
/* The number of this rank among those on the same machine. */
int64_t burst_world_local_rank(const burst_world *world);

/* Writes to `all`, in the order of the ranks, the `bytes` bytes that each of
   them has at `mine`: at most 1 MiB, equally many on all ranks. A deadline of 0
   is 600. */
burst_error *burst_world_gather(burst_world *world, const void *mine,
                                size_t bytes, void *all,
                                double deadline_seconds);
/* Returns when all ranks have called it. */
burst_error *burst_world_barrier(burst_world *world, double deadline_seconds);

typedef struct burst_tcp_config {
  size_t size;
  burst_world *world; /* required; has one transport at a time */
} burst_tcp_config;

/* This rank's transport over connections to all other ranks: for shards in the
   host's memory. Runs on it compare what they are about to do: the program, the
   extents and all sizes that must be the same on all ranks. */
burst_error *burst_transport_create_tcp(const burst_tcp_config *config,
                                        burst_transport **transport);

typedef struct burst_nccl_config {
  size_t size;
  burst_device *device; /* required: a CUDA device, another one on each rank */
  /* Required unless a communicator is given. It has one transport at a time,
     and tells what became of the other ranks; without it, a rank that died is
     known by the deadline of a run. */
  burst_world *world;
  /* NULL, or an ncclComm_t of all ranks, which must not be in use and outlives
     the transport. It is split, and never aborted. */
  void *communicator;
  double timeout_seconds; /* until NCCL has connected the ranks, and to end; 0:
                             300 */
} burst_nccl_config;

/* This rank's transport over NCCL, for shards in the memory of GPUs;
   collective. What a rank sends and receives in one hop is one group on one
   communicator of its own and one stream of high priority. A gather of shards
   of one size is one ncclAllGather and an all-to-all of such one ncclAlltoAll
   (of NCCL 2.28; else sends and receives), in memory beside that of the plan;
   those along some of a grid's axes are on a communicator that ncclCommSplit
   makes of it, before the first run that has them. The library is found by
   BURST_NCCL_LIBRARY, or as libnccl.so.2. */
burst_error *burst_transport_create_nccl(const burst_nccl_config *config,
                                         burst_transport **transport);

typedef struct burst_ipc_config {
  size_t size;
  burst_device *device; /* required: a CUDA device */
  burst_world *world;   /* required; has one transport at a time */
  /* The GPU's memory that is kept for each of the ranks, for what it sends to
     this one: the same on all, at least 1024; 0: 32 MiB. Messages that are
     larger pass in chunks of half of it. */
  int64_t buffer_bytes;
  double timeout_seconds; /* until all ranks have come; 0: 300 */
} burst_ipc_config;

/* This rank's transport to processes on the same machine, by the copy engines
   of GPUs that reach each other's memory; collective. Shards may lie anywhere
   in the memory of the GPU: a sender copies to a buffer of the receiver, and
   that copies to where it wants it. Neither takes a thread of the host: streams
   wait for each other, and burst_run for nobody. Messages from one rank to
   another one are matched in the order in which they are started. Runs must not
   be captured to graphs.

   Fails on all ranks, and leaves the world as it was, where ranks are on
   several machines or do not share /dev/shm, where a GPU cannot reach that of
   another rank, or where the driver cannot let streams wait for values: there,
   use burst_transport_create_nccl. To destroy it waits until the other ranks do
   the same, for at most 10 seconds, because they write to memory of this one.
 */
burst_error *burst_transport_create_ipc(const burst_ipc_config *config,
                                        burst_transport **transport);

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
/* A program from a shared object. Its code is trusted: loading runs it. What
   burst_compile_to_file and burst-compile have written ends with a checksum:
   damage is an error here and not a fault when it runs. Shared objects that
   others have linked are taken without. */
burst_error *burst_program_load(const char *path, burst_program **program);
void burst_program_retain(burst_program *program);
/* NULL is ignored. */
void burst_program_release(burst_program *program);

const char *burst_program_name(const burst_program *program);
/* The processor and features that it was compiled for. */
const char *burst_program_target(const burst_program *program);
int64_t burst_program_num_ranks(const burst_program *program);
/* Not 0: it runs on CUDA devices, else on CPU devices. */
int64_t burst_program_is_gpu(const burst_program *program);
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
   rank with a compute track (launches and waits) and its transfers. A link
   stays, and what it leads to is replaced; to a pipe or a device it is
   written. */
burst_error *burst_trace_write(burst_trace *trace, const char *path);
/* NULL is ignored. */
void burst_trace_destroy(burst_trace *trace);

/* What a run of one rank did. Written also where the run fails. On a GPU,
   compute_seconds is the time from its begin to its end there, 0 if it is
   captured; wait_seconds is the time that its host code waited for that of its
   peers; tasks are blocks. */
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
  int64_t peak_total;     /* peak_sum + tensor_bytes; what a transport keeps, as
                             burst_ipc_config says, comes on top */
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
  double deadline_seconds;    /* of each wait for a peer, and on a GPU from one
                                 transfer to the next or to the end; 0: 600 */
  burst_trace *trace;         /* NULL: none, as it must be on a GPU */
  /* Not 0: look for what the program does wrong. Allocations, results, and
     memory to receive into are filled with 0xFF bytes; it is an error to touch
     memory in flight: a launch that reads or writes what is being received or
     writes what is being sent, a start that overlaps a transfer under way, a
     release; so is an order of tasks that is no permutation. */
  int64_t checked;
} burst_run_config;

/* Runs the program of one rank on its shards. `values` has a tensor for each of
   the `count` parameters. Types, ranks and static sizes must be those of the
   parameter; the sharded dimension has the rank's local size; a batch that is
   open is the same in all sharded tensors; the last stride is 1; no result
   overlaps another tensor or itself. Extents are scalars of type i64.

   With a stream, errors of the run are those of burst_stream_synchronize; the
   array `values` is copied, but what its tensors point to (scalars included),
   the counters, the transport and the trace are used until then.

   On a CUDA device, tensors are in the GPU's memory, but those of parameters
   that are is_host and all scalars in the host's. Without a stream the run has
   one of its own, which it waits for. */
burst_error *burst_run(burst_program *program, const burst_run_config *config,
                       const burst_tensor *values, int64_t count,
                       burst_counters *counters);

/*----------------------------------------------------------------------------*/
/* Global tensors                                                             */
/*----------------------------------------------------------------------------*/

/* Copies between a parameter's global tensor and the shard of one rank. Both
   may have any strides; what is written may not overlap itself. Parameters that
   are not sharded are copied whole.

   A result that is_partial, such as the gradient of a table that every rank
   has, is the partial result of one rank. Gathering that of rank 0 writes it,
   gathering that of another rank adds it: do so in the order of the ranks, and
   the sum has the same bits every time. Where ranks are no threads of one
   process, the caller sums up what they have (an all-reduce). */
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
  /* NULL: all ranks are threads of this process. Else a transport of the rank
     that this process is, which runs that rank alone: all ranks make this call,
     with the same globals, and rank 0 gets the results and the counters of all;
     those of the others are left alone. Transfers are not delayed then. */
  burst_transport *transport;
} burst_run_all_config;

/* Runs all ranks as threads on shards of global tensors, and gathers the
   results: partial results are added up in the order of the ranks, another
   result that is not sharded is taken from rank 0. Global tensors are in the
   host's memory, also where the device is a GPU. `counters` is NULL or has an
   element per rank, all of one size. The error is that of the rank that failed
   first, not of those that it stopped. */
burst_error *burst_run_all(burst_program *program,
                           const burst_run_all_config *config,
                           const burst_tensor *globals, int64_t count,
                           burst_counters *counters);

/*----------------------------------------------------------------------------*/
/* Compiling                                                                  */
/*----------------------------------------------------------------------------*/

/* In libburst, not in libburst_runtime. Every function here may be called from
   any number of threads at once: a compilation shares nothing with another.
   Proofs of one program take turns. Several threads and processes may write one
   file: it is always that of one of them. */

/* Programs that were compiled, each with one reference held by the cache. The
   key is everything that decides the code: text, entry, processor, features,
   what is left out, and the dump directory. Threads that ask for the same key
   at the same time compile once. Errors are not kept. */
typedef struct burst_cache burst_cache;

burst_error *burst_cache_create(burst_cache **cache);
/* Programs that were handed out live on. NULL is ignored. */
void burst_cache_destroy(burst_cache *cache);
/* How many programs there are, and how often one of them was the answer. */
int64_t burst_cache_size(burst_cache *cache);
int64_t burst_cache_hits(burst_cache *cache);

typedef struct burst_compile_config {
  size_t size;
  const char *entry;     /* the function, not ""; NULL: the only one that can be
                            run */
  const char *name;      /* of the text in locations; NULL: "text" */
  const char *processor; /* by LLVM's name; NULL: this machine */
  const char *features;  /* "+avx2,-fma", on top of the processor's */
  const char *dump_directory; /* for the IR of each phase; NULL: none */
  burst_cache *cache;         /* NULL: none */
  const char *target;         /* "cpu" or "cuda"; NULL: "cpu" */
  /* Of GPUs, as in "sm_80,sm_90": machine code is made for each of them, and
     PTX, for all later ones, of the first. NULL: "sm_80" and the GPUs found
     here. The processor is that of the host. */
  const char *architectures;
  /* Optimisations that are left out, to measure what each saves, as in
     "overlap,dropping". NULL: none. Results and proof are the same:

       overlap       a transfer and what could hide it follow each other
       dropping      what the mask does not need is sent and computed, too
       local_tiling  scores of a whole slice are kept, and not those of tiles;
                     not of "cuda"

     Global attention optimisation is left out by the strategy ring_scores. The
     first two want attention over global tensors, not the program of a rank. */
  const char *without;
} burst_compile_config;

/* Compiles a function of a module in MLIR's text: burst.attention over global
   tensors, or the program of a rank as `burst-to-ring` leaves it. The text has
   `length` bytes, at most 2^30, and need not end with a zero. `config` may be
   NULL. Sizes that the text leaves open are arguments of the program, which
   runs for all of them.

   What the compiler refuses is BURST_INVALID_PROGRAM; the error has the line
   and column of the op as its location ("text:3:8"), and in the message all
   diagnostics, a line each. A schedule of static sizes has been proved when
   this returns, see burst_program_proof; for others see burst_program_prove.
   The processor must be one that this machine can stand in for. */
burst_error *burst_compile_text(const char *text, size_t length,
                                const burst_compile_config *config,
                                burst_program **program);

/* The same, written as a shared object for burst_program_load and `burst-run`:
   it needs libm and libc. Any processor of this architecture will do. A linker
   (ld.lld, ld or cc) must be on the PATH. `path` is replaced at once when all
   is written. A cache is refused. */
burst_error *burst_compile_to_file(const char *text, size_t length,
                                   const burst_compile_config *config,
                                   const char *path);

/* Which pass of attention. */
enum { BURST_FORWARD, BURST_BACKWARD };

/* An axis of the grid of ranks, and what is sharded over it. Ranks count the
   places of the grid, the last axis the fastest. Several axes that shard one
   thing follow each other, and count as one. Heads and batch are cut into equal
   parts, heads of keys like those of queries: nothing of them travels, and
   masks and scores see the numbers that they have in the whole tensors. */
typedef struct burst_axis {
  int64_t num_ranks;
  const char *order;  /* how positions are sharded, as in #burst.sequence:
                         "contiguous", "zigzag", "striped", "striped 64"; NULL:
                         "contiguous", or that of the axis before it. Of the
                         first axis of a sequence only */
  const char *shards; /* "sequence", "heads" or "batch"; NULL: "sequence" */
} burst_axis;

/* An attention over q (batch, query_length, query_heads, head_dim),
   k (batch, key_length, key_heads, head_dim) and
   v (batch, key_length, key_heads, value_dim), with the results
   o (batch, query_length, query_heads, value_dim) and
   lse (batch, query_heads, query_length), which is f64 for f64, else f32, and
   max_scores, where it is asked for, which is like lse.

   Mask, score and strategy are names as in MLIR's text. For query i, key j and
   their distance d = i + key_length - query_length - j:

     mask       full: all pairs are kept; causal: d >= 0;
                window<left = L, right = R>: -R <= d <= L, a side that is left
                out has no bound; prefix<N>: j < N or d >= 0;
                documents: query_ids[i] = key_ids[j]
     score      softcap<C>: C * tanh(s / C), C with a point as in 30.0;
                alibi: s - slopes[head] * |d|; bias: s + bias[i, j]
     strategy   ring_kv: keys and values travel round the ring; ring_q: queries
                do, and what belongs to them (few queries, a long cache);
                double_ring_kv, double_ring_q: of a sequence over two axes, the
                same round the ranks of the last axis (a node) while shards of
                other nodes are on their way; bi_ring_kv, bi_ring_q: the same in
                both directions of a ring at once, in half of the turns (links
                that are full duplex, where latency counts); direct_kv,
                direct_q: the same as in a ring, but straight from their owners
                and only to who needs them (masks that are no band); all_gather:
                each rank gathers keys and values (few ranks, short sequences:
                it holds all of them); gather_q: each rank gathers queries and
                attends its own keys, states return to their owners (decode: a
                few queries, a long cache, few ranks); ulysses: an all-to-all
                shards heads in place of the sequence (which numbers of them:
                docs/how-to.md); alone, or along the last axes around another
                strategy: "ulysses on [1], ring_kv on [0]"; a part of the heads
                at a time: "ulysses in 4 chunks" (less memory, and one is
                exchanged while another is computed); ring_scores: a baseline
                without online softmax, never chosen; its backward pass makes
                the probabilities of the forward pass anew, of lse, and takes no
                softcap

   What names take are tables: ids of i32, others of the type of lse. A mask or
   a score has each name that takes one at most once.

   Arguments have these names, in this order: q, k, v; query_ids, key_ids,
   slopes, bias; lengths that are known at run time. The backward pass takes in
   front of the tables also o and lse, as the forward pass gave them, do, the
   gradient of a loss by o, and dlse, where it is said to, that by lse; it gives
   dq, dk and dv, like q, k and v, and dslopes and dbias where they are asked
   for: of several ranks each gives the sum over its own pairs, and
   burst_run_all what all give together. */
typedef struct burst_attention {
  size_t size;
  /* Required. A batch or length of -1 is known at run time. */
  const burst_axis *axes;
  int64_t num_axes; /* from 1 to 8 */
  int64_t type;     /* BURST_F64, BURST_F32, BURST_BF16 or BURST_F16 */
  int64_t batch;
  int64_t query_length;
  int64_t key_length;
  int64_t query_heads; /* a multiple of key_heads */
  int64_t key_heads;
  int64_t head_dim;
  /* May be left out. */
  int64_t value_dim; /* 0: head_dim */
  const char *mask;  /* a name, or a list: "[causal, documents]" keeps what each
                        of them keeps; NULL: all pairs are kept */
  const char *score; /* a name, or a list: "[softcap<30.0>, alibi]" begins with
                        the first; NULL: scores stay as they are */
  const char *strategy; /* NULL: the compiler chooses */
  double scale; /* of products of queries and keys; 0: 1 / sqrt(head_dim) */
  int64_t pass; /* BURST_FORWARD or BURST_BACKWARD */
  /* Not 0: the forward pass also gives max_scores, the largest score of each
     query and head (batch, query_heads, query_length), -inf where the mask
     keeps none. The largest of a head, which QK-clip asks for, is that of its
     queries, on all ranks. */
  int64_t max_scores;
  int64_t lse_gradient;  /* not 0: the backward pass takes dlse, like lse */
  const char *gradients; /* of the backward pass, tables of the score whose
                            gradients are wanted too: "slopes", "bias" or
                            "slopes,bias"; NULL: none */
} burst_attention;

/* Compiles the text of burst_attention_text. An error of the description names
   the field: BURST_INVALID_ARGUMENT, also where the compiler refuses what names
   have as parameters. */
burst_error *burst_compile_attention(const burst_attention *attention,
                                     const burst_compile_config *config,
                                     burst_program **program);
/* The module that a description stands for. */
burst_error *burst_attention_text(const burst_attention *attention,
                                  char **text);
/* NULL is ignored. */
void burst_text_destroy(char *text);

/* What is told of a schedule, nothing of which is compiled or run. */
enum {
  BURST_EXPLAIN_TABLE = 0, /* what each rank computes and sends, hop by hop, and
                              what each strategy would have cost, for people */
  BURST_EXPLAIN_PLAN = 1,  /* what each rank sends and holds, in JSON, as
                              `ring-plan` prints it */
  BURST_EXPLAIN_SVG = 2,   /* the table as a picture */
  BURST_EXPLAIN_TIME = 3,  /* how long it would take on a machine, where ranks
                              wait and what limits, as `burst-simulate` says
                              it, for people */
  BURST_EXPLAIN_TIME_JSON = 4,    /* the same in JSON */
  BURST_EXPLAIN_TIMELINE = 5,     /* when ranks compute and send, a trace for
                                     Perfetto */
  BURST_EXPLAIN_TIMELINE_SVG = 6, /* the same as a picture */
  BURST_EXPLAIN_COMPARISON = 7    /* how long each strategy would take, or what
                                     else `compare` says, for people */
};

typedef struct burst_explain_config {
  size_t size;
  int64_t what;        /* BURST_EXPLAIN_TABLE, ... */
  int64_t max_ranks;   /* of a table, a picture or a timeline, to show the first
                          of them; 0: 16, and of a table a summary of more than
                          64; else it must be 0 */
  const char *name;    /* of the text in locations; NULL: "text" */
  const char *without; /* as in burst_compile_config; a schedule knows no
                          local_tiling */
  const char *machine; /* whose time is told: the text of a module of which
                          `#dlti.target_system_spec` describes it, as those of
                          machines/; NULL: what the text itself says, then an
                          accelerator of 600 TFLOP/s behind 400 Gbit/s.
                          Strategies are chosen for it too */
  const char *compare; /* of a comparison, what is varied: "strategies",
                          "orders" and "placements" of the grid's axes over
                          nodes, several as "strategies,orders"; NULL:
                          "strategies". Else it must be NULL */
} burst_explain_config;

/* Tells of the programs of a module as burst_compile_text takes it, for any
   number of ranks; sizes must be static. `config` may be NULL. The schedule has
   been proved where this returns no error, else it is BURST_INVALID_PROGRAM.
   The caller destroys the text. */
burst_error *burst_explain_text(const char *text, size_t length,
                                const burst_explain_config *config,
                                char **told);

/* For what the schedule of a program has been proved when it was compiled. */
typedef enum burst_proof {
  /* For nothing yet: its sizes or tables are open, and burst_program_prove runs
     all ranks, without data; or the program is from a file, or NULL. */
  BURST_PROOF_NONE = 0,
  /* For the ranks, sizes and tables that it has, by a run of all ranks. */
  BURST_PROOF_THESE_RANKS = 1,
  /* For every number of ranks, all sizes and all tables. Of sizes and tables
     that are open burst_program_prove looks at what the mask needs, and runs no
     rank. */
  BURST_PROOF_ALL_RANKS = 2,
  /* The same for every number that is odd, or even, as that of the program:
     rings in both directions. */
  BURST_PROOF_ALL_ODD_RANKS = 3,
  BURST_PROOF_ALL_EVEN_RANKS = 4
} burst_proof;

burst_proof burst_program_proof(const burst_program *program);

/* Proves the schedule of a compiled program for the sizes, tables and scalars
   of one run: every pair of positions that the mask keeps is computed once,
   every message is received, no rank waits for ever. Nothing is computed; what
   was proved is remembered. Call it (on one rank) before a program runs with
   sizes or tables that its text left open; without it a schedule that is wrong
   ends as the error of a run, or not at all. `globals` has the `count`
   arguments of the program as global tensors: an error where their types or
   sizes contradict the program. Of sharded ones only the sizes are read, and of
   extents nothing. A program from a file has nothing left to
   prove with. */
burst_error *burst_program_prove(burst_program *program,
                                 const burst_tensor *globals, int64_t count);

#ifdef __cplusplus
}
#endif

#endif /* BURST_BURST_H */
